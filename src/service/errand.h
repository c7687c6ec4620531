// A lane and who wants something of it, remembered longer than the command that named them.
#pragma once

#include <string>

#include "engine/types.h"

namespace turnstile {

// Owns its texts: commands only lend theirs.
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

}  // namespace turnstile
