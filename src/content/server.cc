// See server.h.
#include "content/server.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "content/service.h"
#include "http/listener.h"

namespace turnstile::content {
namespace {

constexpr size_t kMaxMessage = 16 << 20;  // containerd's limit
constexpr std::chrono::seconds kGoodbye{2};

bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0; }

// Whoever may write to a directory may put another socket there under the same name; whoever may write to one
// above it, another directory. Where the sticky bit is set, only the owner of a thing may replace it.
Result<void> check_that_none_can_replace(const std::filesystem::path& directory) {
  for (std::filesystem::path path = directory;; path = path.parent_path()) {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
      return fail(fmt::format("{} is not a directory", path.string()));
    const bool others_write =
        (status.st_mode & 022) != 0 && ((status.st_mode & S_ISVTX) == 0 || path == directory);
    if (others_write || !is_trusted(status.st_uid))
      return fail(
          fmt::format("{}: others can write here, and so replace the socket: chmod 0711", path.string()));
    if (path == path.root_path()) return {};
  }
}

// The socket's path, without links: its directory is there, and nobody else can replace what is in it.
Result<std::filesystem::path> prepare_path(const std::string& socket) {
  const std::filesystem::path path = std::filesystem::absolute(socket), directory = path.parent_path();
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(fmt::format("cannot make {}: {}", directory.string(), std::strerror(errno)));
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(directory, error);
  if (error) return fail(fmt::format("{}: {}", directory.string(), error.message()));
  if (Result<void> safe = check_that_none_can_replace(real); !safe) return std::unexpected(safe.error());
  return real / path.filename();
}

// A socket that we did not make must be as one that we make: at the place where containerd will look, and
// closed to others.
Result<void> check_passed(const UniqueFd& passed, const std::filesystem::path& path) {
  const std::string address = http::bound_address(passed.get());
  struct stat there, named;
  if (!address.starts_with("unix:") || ::lstat(address.c_str() + 5, &there) != 0 ||
      ::lstat(path.c_str(), &named) != 0 || there.st_dev != named.st_dev || there.st_ino != named.st_ino)
    return fail(
        fmt::format("the socket that was passed is {}, but --socket says {}", address, path.string()));
  if (!S_ISSOCK(there.st_mode) || (there.st_mode & 077) != 0 || !is_trusted(there.st_uid))
    return fail(fmt::format("{}: the socket must be closed to others: SocketMode=0600", path.string()));
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ContentStore& store, const std::string& socket, UniqueFd passed,
                                              std::chrono::milliseconds stalled_after) {
  const Result<std::filesystem::path> path = prepare_path(socket);
  if (!path) return std::unexpected(path.error());
  if (passed.is_open())
    if (Result<void> good = check_passed(passed, *path); !good) return std::unexpected(good.error());
  std::unique_ptr<Server> server(new Server(content_methods(store, stalled_after)));
  const rpc::Limits limits{.max_message = kMaxMessage};
  Result<std::unique_ptr<rpc::Server>> calls =
      passed.is_open() ? rpc::Server::start(std::move(passed), server->methods_, limits)
                       : rpc::Server::start(*path, server->methods_, limits);
  if (!calls) return std::unexpected(calls.error());
  server->calls_ = std::move(*calls);
  return server;
}

void Server::stop() { calls_->stop(kGoodbye); }

}  // namespace turnstile::content
