#include "base/stderr_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

namespace turnstile {
namespace {

constexpr std::chrono::milliseconds kPatience(100);
// A pipe that poll() calls writable takes so much without blocking.
constexpr size_t kPart = 4096;

// stderr, for one line. Its description is shared with whoever started the program, so O_NONBLOCK would be
// theirs, too: a pipe or a terminal is opened anew. What may not be opened (another user's terminal) is asked
// by poll() before each write; there a terminal can still block, because it calls itself writable too early.
class Outlet {
 public:
  Outlet() {
    struct stat about{};
    if (::fstat(STDERR_FILENO, &about) != 0) return;
    is_socket_ = S_ISSOCK(about.st_mode);
    if (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode))
      own_ = ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  }
  ~Outlet() {
    if (own_ >= 0) ::close(own_);
  }
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  // As write(). EAGAIN: there is no room.
  ssize_t write(std::string_view bytes) const {
    if (is_socket_) return ::send(STDERR_FILENO, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (own_ >= 0) return ::write(own_, bytes.data(), bytes.size());
    if (wait(std::chrono::milliseconds(0)))
      return ::write(STDERR_FILENO, bytes.data(), std::min(bytes.size(), kPart));
    errno = EAGAIN;
    return -1;
  }

  bool wait(std::chrono::milliseconds longest) const {
    pollfd out{.fd = own_ >= 0 ? own_ : STDERR_FILENO, .events = POLLOUT, .revents = 0};
    return ::poll(&out, 1, int(longest.count())) > 0;
  }

 private:
  bool is_socket_ = false;
  int own_ = -1;
};

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
  using std::chrono::steady_clock;
  const Outlet outlet;
  const auto begin = steady_clock::now();
  for (const size_t whole = bytes.size(); !bytes.empty();) {
    const ssize_t count = outlet.write(bytes);
    if (count >= 0) {
      bytes.remove_prefix(size_t(count));
      torn_ = false;
      continue;
    }
    if (errno == EINTR) continue;
    const auto left = kPatience - (steady_clock::now() - begin);
    const bool may_wait = errno == EAGAIN && !stuck_ && left > left.zero();
    if (may_wait && outlet.wait(std::chrono::ceil<std::chrono::milliseconds>(left))) continue;
    stuck_ = errno == EAGAIN || may_wait;
    torn_ = torn_ || bytes.size() < whole;
    return false;
  }
  stuck_ = false;
  return true;
}

}  // namespace turnstile
