// See server.h.
#include "content/server.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "content/service.h"

namespace turnstile::content {
namespace {

constexpr size_t kMaxMessage = 16 << 20;  // containerd's limit
constexpr std::chrono::seconds kGoodbye{2};

Result<void> prepare_directory(const std::string& socket) {
  const std::string directory = std::filesystem::absolute(socket).parent_path();
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(fmt::format("cannot make {}: {}", directory, std::strerror(errno)));
  struct stat status;
  if (::stat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return fail(fmt::format("{} is not a directory", directory));
  if ((status.st_mode & 077) != 0 || status.st_uid != ::geteuid())
    return fail(fmt::format("{}: the socket's directory must be this user's and closed to others: chmod 0700",
                            directory));
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ContentStore& store, const std::string& socket) {
  if (Result<void> ready = prepare_directory(socket); !ready) return std::unexpected(ready.error());
  std::unique_ptr<Server> server(new Server(content_methods(store)));
  Result<std::unique_ptr<rpc::Server>> calls =
      rpc::Server::start(std::filesystem::absolute(socket), server->methods_, {.max_message = kMaxMessage});
  if (!calls) return std::unexpected(calls.error());
  server->calls_ = std::move(*calls);
  return server;
}

void Server::stop() { calls_->stop(kGoodbye); }

}  // namespace turnstile::content
