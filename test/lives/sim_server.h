// A lock server that plugins reach over wires that lose, repeat and delay: the plugin's LockServer, in
// virtual time, in front of the real rules.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "content/lock_server.h"
#include "rules.h"
#include "schedule.h"

namespace turnstile::lives {

using sim::Schedule;

// What of a plugin its wires must know.
struct Wire {
  std::string node;
  Time cut_until{};      // nothing comes through
  Time stalled_until{};  // the whole process stands still
  bool dead = false;     // it was killed: nothing that it still does counts
  // Calls that nobody waits for any more, in the server's buffers. What is behind them there is not answered
  // long before they are carried out; and a client that gives up a call, or is killed, takes back what it has
  // not sent (SO_LINGER).
  std::vector<std::function<void()>> buffered;
};

// The server, in one life after the other.
struct SimServer {
  std::unique_ptr<ServerRules> rules = std::make_unique<ServerRules>();
  uint64_t life = 1;
  Time began{};
  bool up = true;
  bool faults = true;  // calls get lost
  bool delays = true;  // and found again
  Time calm_until{};   // no wire is cut before
  size_t delayed = 0;  // so many came long after nobody waited for them any more
};

// `sleep` lets others go on; it is called by the caller of a call.
std::unique_ptr<content::LockServer> connect(SimServer& server, std::shared_ptr<Wire> wire,
                                             Schedule& schedule, std::function<void(Duration)> sleep);

}  // namespace turnstile::lives
