// What our programs that run in the background do in the same way: their environment, and the signals that
// end them.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>
#include <string>

namespace turnstile {

std::optional<std::string> from_environment(const std::string& name);

// To be made before any thread starts, so that only wait() ever gets these signals. A socket whose other side
// has gone, and a file that may not grow, are errors of the write from then on, not signals.
class DaemonSignals {
 public:
  explicit DaemonSignals(std::initializer_list<int> numbers);
  int wait() const;  // the next one; 0: wake() was called
  // Ends a wait(), from any thread.
  void wake() const;

 private:
  sigset_t set_;
};

}  // namespace turnstile
