// The process between `exec` and its command. It exists so that the command's whole group ends in time
// whatever happens to the CLI: killed, stopped, swapped out, or cut off from the server.
#pragma once

#include <string>
#include <vector>

#include "cli/exec_channel.h"

namespace turnstile::cli {

struct SupervisorSettings {
  const std::vector<std::string>& command;
  sigset_t mask;           // that the command begins with
  std::vector<int> pipes;  // the command's ends of the pipes to the CLI
};

// The supervisor's life, in a process forked for it; `channel` is its end.
//
// Starts the command when told to, and reports its end when nobody of its group lives. At a deadline, on
// `kill`, and when the CLI is gone without a word, it ends the group and, being a subreaper, every other
// descendant that has not found a parent outside. A command that ends by itself takes the rest of its group
// with it (SIGTERM, two seconds, SIGKILL); what has left the group by setsid goes on then.
// Time: the clock of leases, the same in both processes. Threads: none.
[[noreturn]] void supervise(const SupervisorSettings& settings, UniqueFd channel);

}  // namespace turnstile::cli
