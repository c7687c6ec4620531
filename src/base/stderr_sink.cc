#include "base/stderr_sink.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace turnstile {
namespace {

constexpr int kPatienceMs = 100;
// A pipe that poll() calls writable takes so much without blocking.
constexpr size_t kPart = 4096;

}  // namespace

void StderrSink::sink_it_(const spdlog::details::log_msg& message) {
  if (lost_ > 0) {
    const std::string text = say_lost_(lost_);
    spdlog::details::log_msg lost = message;
    lost.level = spdlog::level::warn;
    lost.payload = text;
    if (put(lost)) lost_ = 0;
  }
  if (!put(message)) ++lost_;
}

bool StderrSink::put(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  if (torn_) line.push_back('\n');
  formatter_->format(message, line);
  return write_all({line.data(), line.size()});
}

bool StderrSink::write_all(std::string_view bytes) {
  for (bool first = true; !bytes.empty(); first = false) {
    const ssize_t count =
        has_room() ? ::write(STDERR_FILENO, bytes.data(), std::min(bytes.size(), kPart)) : -1;
    if (count < 0) {
      if (!stuck_ && errno == EINTR) continue;
      torn_ = torn_ || !first;
      return false;
    }
    bytes.remove_prefix(size_t(count));
    torn_ = false;
  }
  return true;
}

bool StderrSink::has_room() {
  pollfd out{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  stuck_ = ::poll(&out, 1, stuck_ ? 0 : kPatienceMs) == 0;
  return !stuck_;
}

}  // namespace turnstile
