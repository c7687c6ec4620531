// Starting exec's command: a process group of its own, the caller's terminal, a clean set of signals.
#pragma once

#include <signal.h>

#include <expected>
#include <string>
#include <vector>

namespace turnstile::cli {

// Those that the supervisor ignores, and its command must not inherit as ignored.
inline constexpr int kOurSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU};

struct CommandStart {
  const std::vector<std::string>& command;
  const std::string& environment;   // "NAME=VALUE\0…", on top of our own
  sigset_t mask;                    // that the command begins with
  const std::vector<int>& ignored;  // signals that it ignores from the beginning (nohup)
  bool foreground = false;          // give it the terminal
};

// By a process of one thread only: the child allocates between fork and exec. Returns the process id, or the
// errno that exec gave. The command dies with the process that calls this.
std::expected<pid_t, int> start_command(const CommandStart& start);

}  // namespace turnstile::cli
