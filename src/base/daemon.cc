// See daemon.h.
#include "base/daemon.h"

#include <unistd.h>

#include <cstdlib>

namespace turnstile {

std::optional<std::string> from_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

DaemonSignals::DaemonSignals(std::initializer_list<int> numbers) {
  sigemptyset(&set_);
  for (const int number : numbers) sigaddset(&set_, number);
  sigaddset(&set_, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

int DaemonSignals::wait() const {
  int number = 0;
  sigwait(&set_, &number);
  return number == SIGRTMIN ? 0 : number;
}

void DaemonSignals::wake() const { kill(getpid(), SIGRTMIN); }

}  // namespace turnstile
