// What the server remembers of a connection that is more than request and answer.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "engine/types.h"

namespace turnstile {

// A lane and a requester, owned: commands only lend theirs.
struct Errand {
  std::string operation, resource, node, request;

  Errand() = default;
  Errand(const LaneName& lane, const Requester& who)
      : operation(lane.operation.text),
        resource(lane.resource.text),
        node(who.node.text),
        request(who.request.text) {}

  LaneName lane() const { return {OperationName(operation), ResourceId(resource)}; }
  Requester who() const { return {NodeId(node), RequestId(request)}; }
  bool is(const LaneName& other, const Requester& by) const { return lane() == other && who() == by; }
};

struct ConnectionState {
  bool polls = false;  // a long poll is open (S24)
  Errand poll;
  bool streams = false;  // it is an event stream
  bool stream_is_bond = false;
  Errand stream;
  Time next_comment{};
  std::vector<Errand> bonds;  // holds and waits that live by this connection (S21)
  size_t prune_at = 64;       // when so many, look for those that ended otherwise
};

}  // namespace turnstile
