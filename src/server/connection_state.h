// What the server remembers of a connection that is more than request and answer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

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

struct ConnectionState {
  std::optional<Errand> poll;  // an open long poll (S24)
  bool walks = false;          // a request that is carried out in slices
  std::unique_ptr<StreamState> stream;
  std::vector<Errand> bonds;  // holds and waits that live by this connection (S21)
  size_t prune_at = 64;       // when so many, look for those that ended otherwise

  bool is_plain() const { return !poll && !walks && !stream && bonds.empty(); }
};

}  // namespace turnstile
