// Pieces of the status answer that other answers have too: who holds a lane, and which nodes use a resource.
#pragma once

#include <string>
#include <string_view>

#include "engine/answer.h"

namespace turnstile {

// The holder's operation is told only if it is not `asked`, the one that the reader has in mind.
void append_holder_field(std::string& out, std::string_view name, const HolderView& holder,
                         OperationName asked);

// ,"completed_by":"a","completed_ms_ago":5000 and, if there is one, ,"result":"..."
void append_done_fields(std::string& out, const DoneView& done);

// {"count":2,"nodes":["a","b"]}
void append_nodes_field(std::string& out, std::string_view name, const NodesView& nodes);

// ,"waiters":["a","b"] and, if there are more than are named, ,"waiters_count":5000
void append_waiters_field(std::string& out, const NodesView& waiters);

}  // namespace turnstile
