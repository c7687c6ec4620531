// A watch that outlives its connections.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "etcd/members.h"

namespace turnstile::etcd {

// One stream at a time, on a thread of its own; when it breaks, another from behind what was seen, at the
// next member. `members` must outlive it.
std::unique_ptr<Watch> make_watch(Members& members, const std::string& begin, const std::string& end,
                                  Revision from, OnWatch on_events, std::function<void(CallError)> on_lost);

}  // namespace turnstile::etcd
