// See standard_streams.h.
#include "base/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace turnstile {
namespace {

std::atomic<int> g_output_fault{0};  // errno of the first
std::atomic<bool> g_fault_taken{false};

// Right behind the call that failed. What is left in the buffer is not to arrive later, after all.
void note_output_fault() {
  const int number = errno != 0 ? errno : EIO;
  int none = 0;
  g_output_fault.compare_exchange_strong(none, number);
  __fpurge(stdout);
}

}  // namespace

void fill_standard_descriptors() noexcept {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // It becomes the lowest free one, which this is. Opened the wrong way round, so that using it is EBADF.
    (void)open("/dev/null", (descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

void write_error(std::string_view text) noexcept {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

void write_output(std::string_view text) noexcept {
  if (g_output_fault != 0) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_output_fault();
}

bool flush_output() noexcept {
  if (g_output_fault != 0) return false;
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_output_fault();
  return g_output_fault == 0;
}

int take_output_fault() noexcept {
  // Network file systems tell that a disk is full only when a file is closed, and any copy does for that. A
  // stdout that is closed is a fault only if there was something to write.
  if (flush_output()) {
    const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    errno = 0;
    if (copy >= 0 && close(copy) != 0 && errno != EINTR) note_output_fault();
  }
  return g_fault_taken.exchange(g_output_fault != 0) ? 0 : int(g_output_fault);
}

int exit_after_output(int code, const std::function<void(const std::string&)>& say) {
  const int fault = take_output_fault();
  if (fault == 0) return code;
  if (fault == EPIPE) return 128 + SIGPIPE;
  say(fmt::format("the output could not be written and is missing or cut short: {}", std::strerror(fault)));
  return EXIT_FAILURE;
}

}  // namespace turnstile
