// See systemd.h.
#include "base/systemd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/daemon.h"
#include "base/log.h"

namespace turnstile {
namespace {

constexpr int kFirstPassed = 3;  // after stdin, stdout and stderr

std::optional<long> number(const std::string& text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The next part of a list with colons between them.
std::string take_name(std::string_view& names) {
  const size_t colon = std::min(names.find(':'), names.size());
  std::string name(names.substr(0, colon));
  names.remove_prefix(std::min(colon + 1, names.size()));
  return name.empty() ? "unknown" : name;
}

bool listens(int fd) {
  int yes = 0, type = 0;
  socklen_t size = sizeof yes;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &size) != 0 || yes == 0) return false;
  size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

bool prepare(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 && ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

}  // namespace

Result<std::vector<PassedSocket>> take_passed_sockets() {
  const std::string pid = from_environment("LISTEN_PID").value_or("");
  const std::string count = from_environment("LISTEN_FDS").value_or("");
  const std::string all_names = from_environment("LISTEN_FDNAMES").value_or("");
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(variable);
  std::vector<PassedSocket> sockets;
  if (number(pid) != ::getpid()) return sockets;  // meant for nobody, or for one of our ancestors
  const long passed = number(count).value_or(0);
  std::string_view names = all_names;
  for (int fd = kFirstPassed; fd < kFirstPassed + passed; ++fd) {
    std::string name = take_name(names);
    if (!listens(fd) || !prepare(fd))
      return fail(fmt::format(
          "descriptor {} ({}), which the service manager passed, is not a stream socket that listens", fd,
          name));
    sockets.push_back({UniqueFd(fd), std::move(name)});
  }
  return sockets;
}

void notify_manager(std::string_view state) {
  const std::string path = from_environment("NOTIFY_SOCKET").value_or("");
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';  // one without a file
  const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), size) < 0)
    log_warning("cannot tell the service manager", {{"state", state}, {"errno", errno}});
}

}  // namespace turnstile
