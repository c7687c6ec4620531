// The CLI's side of exec: it forks the supervisor, and while the command runs it carries signals, progress
// and deadlines to and fro.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/exec_channel.h"
#include "cli/terminal.h"
#include "turnstile/hold.h"

namespace turnstile::cli {

// How long before the hold may be lost the command is told to end, and when it is killed. Of a lease of 10 s,
// believed for 9 s after a renewal: told 6.5 s after it, killed 8.5 s after it.
struct Deadlines {
  Steady::time_point term_at, kill_at;
};
Deadlines deadlines_of(Steady::time_point believed_until, std::chrono::milliseconds lease);

// How the command ended.
struct CommandEnd {
  enum class Kind {
    exited,        // value: its code
    signalled,     // value: the signal
    not_started,   // value: errno
    in_danger,     // we ended it, because the lease could not be renewed
    lost,          // we ended it, because the server said that the hold is gone
    unsupervised,  // the supervisor was killed; the command was with it
    timed_out,     // we ended it, because it took longer than it may
  };
  Kind kind = Kind::exited;
  int value = 0;
};

// Made before the process has threads: it forks. Destroyed, it ends the supervisor and what that has started.
// Threads: one.
class ExecSession {
 public:
  ExecSession(const std::vector<std::string>& command, const Signals& signals);
  ~ExecSession();
  ExecSession(const ExecSession&) = delete;
  ExecSession& operator=(const ExecSession&) = delete;

  // Runs the command under `hold` until it has ended, and nobody of its group is left. `timeout`: how long it
  // may take; then it gets SIGTERM, and some seconds later SIGKILL.
  CommandEnd run(Hold& hold, std::chrono::milliseconds lease,
                 std::optional<std::chrono::milliseconds> timeout = std::nullopt);
  // After run(): what the command has written to its result descriptor. Error: why that is no result.
  std::expected<std::string, std::string> result() const;

 private:
  void watch_hold(Hold& hold);
  void tell_deadline(Hold& hold, std::chrono::milliseconds lease);
  void pass_signals();
  void pass_progress(Hold& hold);
  void take_result();
  void keep_timeout(Steady::time_point now);
  std::optional<CommandEnd> take_notice();
  CommandEnd end_of(const Notice& notice) const;

  const Signals& signals_;
  Terminal terminal_;
  UniqueFd channel_, progress_, result_;
  std::string progress_text_;  // a line that has not ended yet
  std::string result_text_;
  Steady::time_point timeout_at_ = Steady::time_point::max(), timeout_kill_at_ = Steady::time_point::max();
  bool timed_out_ = false;
  std::shared_ptr<UniqueFd> changed_;
  pid_t supervisor_ = 0, leader_ = 0;
  Steady::time_point told_until_{};
  bool told_lost_ = false;
  bool killed_ = false;  // the command did not end by itself
};

}  // namespace turnstile::cli
