// See unix_listener.h.
#include "rpc/unix_listener.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace turnstile::rpc {
namespace {

constexpr int kBacklog = 128;

UniqueFd new_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

}  // namespace

Result<UniqueFd> listen_on_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(
        fmt::format("{}: a socket's path must be shorter than {} bytes", path, sizeof address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);

  struct stat there;
  if (::lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) return fail(fmt::format("{} is there and is not a socket", path));
    const UniqueFd probe = new_socket();
    if (::connect(probe.get(), generic, sizeof address) == 0 || errno != ECONNREFUSED)  // not surely dead
      return fail(fmt::format("{}: another process listens there", path));
    ::unlink(path.c_str());
  }
  UniqueFd listener = new_socket();
  // The mode is that of the descriptor at the time of the bind, so there is no moment in which others may
  // enter.
  if (!listener.is_open() || ::fchmod(listener.get(), 0600) != 0 ||
      ::bind(listener.get(), generic, sizeof address) != 0 || ::listen(listener.get(), kBacklog) != 0)
    return fail(fmt::format("cannot listen on {}: {}", path, std::strerror(errno)));
  return listener;
}

}  // namespace turnstile::rpc
