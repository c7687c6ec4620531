// What the server remembers of a connection that is more than request and answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "access/principal.h"
#include "base/time.h"
#include "events/filter.h"
#include "service/errand.h"

namespace turnstile {

// An event stream.
struct StreamState {
  Filter filter;
  uint64_t position = 0;       // every event up to this one has been sent, or is not wanted
  bool behind = false;         // not subscribed: the rest is read from the log when the reader has taken this
  std::optional<Errand> bond;  // whose life it shows (S21)
  Time next_comment{};
};

// A hold or wait that lives by a connection (S21), and who has said so.
struct Bond : Errand {
  access::PrincipalPtr by;  // null: nobody has to say who he is

  Bond(const LaneName& lane, const Requester& who, access::PrincipalPtr principal)
      : Errand(lane, who), by(std::move(principal)) {}
};

struct ConnectionState {
  std::optional<Errand> poll;          // an open long poll (S24)
  bool walks = false;                  // a request that is carried out in slices
  std::optional<std::string> refused;  // a failed log-in that waits for its answer: what it will be told
  std::unique_ptr<StreamState> stream;
  access::PrincipalPtr by;  // who asked for what is under way; null: nobody has to say who he is
  std::vector<Bond> bonds;
  size_t prune_at = 64;  // when so many, look for those that ended otherwise

  bool is_plain() const { return !poll && !walks && !refused && !stream && bonds.empty(); }
};

}  // namespace turnstile
