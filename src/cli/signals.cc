#include "cli/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/check.h"

namespace turnstile::cli {

Signals::Signals(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  TS_CHECK(fd_.get() >= 0, "signals can be read from a descriptor");
}

Signals::~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> Signals::next(std::chrono::milliseconds timeout) const {
  pollfd wanted{.fd = fd(), .events = POLLIN, .revents = 0};
  if (poll(&wanted, 1, int(timeout.count())) <= 0) return std::nullopt;
  signalfd_siginfo info{};
  if (read(fd(), &info, sizeof info) != ssize_t(sizeof info)) return std::nullopt;
  return int(info.ssi_signo);
}

StopOnSignal::StopOnSignal(const Signals& signals) : end_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::jthread([this, &signals] {
    std::array<pollfd, 2> wanted = {pollfd{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = end_.get(), .events = POLLIN, .revents = 0}};
    while (poll(wanted.data(), wanted.size(), -1) < 0) continue;
    if (wanted[1].revents != 0) return;
    const std::optional<int> number = signals.next(std::chrono::milliseconds(0));
    if (!number) return;
    signal_ = *number;
    stop_.request_stop();
  });
}

StopOnSignal::~StopOnSignal() {
  const uint64_t one = 1;
  (void)!write(end_.get(), &one, sizeof one);
}

}  // namespace turnstile::cli
