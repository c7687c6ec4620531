#include "cli/terminal.h"

#include <signal.h>
#include <unistd.h>

namespace turnstile::cli {

bool Terminal::is_ours() const { return isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

void Terminal::remember_modes() {
  if (!has_modes_) has_modes_ = tcgetattr(STDIN_FILENO, &modes_) == 0;
}

bool Terminal::prepare() {
  prepared_ = is_ours();
  if (prepared_) remember_modes();
  return prepared_;
}

void Terminal::started_as(pid_t group) {
  if (prepared_) given_to_ = group;
}

void Terminal::pass_on_to(pid_t group) {
  if (!is_ours()) return;
  remember_modes();
  if (tcsetpgrp(STDIN_FILENO, group) != 0) return;
  given_to_ = group;
  ::kill(-group, SIGCONT);
}

void Terminal::take_back(bool restore) {
  if (given_to_ == 0 || tcgetpgrp(STDIN_FILENO) != given_to_) return;  // somebody else has it by now
  tcsetpgrp(STDIN_FILENO, getpgrp());
  if (restore && has_modes_) tcsetattr(STDIN_FILENO, TCSANOW, &modes_);
}

}  // namespace turnstile::cli
