// The terminal that exec and its command share: who has it, and in which modes it is left.
//
// The command is a process group of its own, so the shell, which knows only our group, cannot give it the
// terminal: we pass it on when we get it (at the start, or later by `fg`), and take it back at the end.
#pragma once

#include <sys/types.h>
#include <termios.h>

namespace turnstile::cli {

// Threads: one.
class Terminal {
 public:
  // Whether the terminal on stdin is our group's at this moment.
  bool is_ours() const;
  // Before the command is started: whether it is to begin with the terminal.
  bool prepare();
  // It was started so, as this group.
  void started_as(pid_t group);
  // Passes it on if it is ours: the command goes on if it was stopped because it lacked it. For every turn of
  // the loop, since a shell does not tell a job that runs that it is in the foreground now.
  void pass_on_to(pid_t group);
  // At the end. `restore`: also the modes, as a shell does after a job that was killed.
  void take_back(bool restore);

 private:
  void remember_modes();

  bool prepared_ = false;
  pid_t given_to_ = 0;
  termios modes_{};
  bool has_modes_ = false;
};

}  // namespace turnstile::cli
