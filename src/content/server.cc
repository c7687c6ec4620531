// See server.h.
#include "content/server.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpcpp/server_builder.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "content/read_calls.h"
#include "content/service.h"

namespace turnstile::content {
namespace {

constexpr int kMaxMessage = 16 << 20;  // containerd's limit; gRPC's own is 4 MiB, less than containerd sends
constexpr std::chrono::seconds kGoodbye{2};

// The umask of the process, changed for as long as it lives. For a time with one thread only.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

// gRPC takes itself down with its last user, and then waits for a poller of its own that may sleep for 10 s.
// It is kept up instead, so that SIGTERM ends the process at once.
void keep_grpc_up() {
  static const bool up = (grpc_init(), true);
  (void)up;
}

Result<void> prepare_directory(const std::string& socket) {
  if (socket.size() >= sizeof(sockaddr_un::sun_path))
    return fail(fmt::format("{}: a socket's path must be shorter than {} bytes", socket,
                            sizeof(sockaddr_un::sun_path)));
  const std::string directory = std::filesystem::absolute(socket).parent_path();
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(fmt::format("cannot make {}: {}", directory, std::strerror(errno)));
  struct stat status;
  if (::stat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return fail(fmt::format("{} is not a directory", directory));
  if ((status.st_mode & 077) != 0 || status.st_uid != ::geteuid())
    return fail(fmt::format("{}: the socket's directory must be this user's and closed to others: chmod 0700",
                            directory));
  struct stat there;
  if (::lstat(socket.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode))
    return fail(fmt::format("{} is there and is not a socket", socket));
  return {};
}

class GrpcServer final : public Server {
 public:
  explicit GrpcServer(ContentStore& store) : store_(store), service_(store) {}
  ~GrpcServer() override { stop(); }

  Result<void> listen(const std::string& socket) {
    const Umask closed(0177);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMaxMessage);
    builder.SetMaxSendMessageSize(kMaxMessage);
    // One thread waits for the calls that are not reads (more work when there is more to do): every further
    // one that waits is one more for gRPC to hand the socket's events around between.
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
    std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (!server_) {
      queue->Shutdown();
      return fail(fmt::format("cannot listen on {}", socket));
    }
    reads_ = std::make_unique<ReadCalls>(service_, store_, std::move(queue));
    reads_->start();
    return {};
  }

  void stop() override {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now() + kGoodbye);
    reads_->stop();
    server_->Wait();
    reads_.reset();
    server_.reset();
  }

 private:
  ContentStore& store_;
  ContentService service_;
  std::unique_ptr<ReadCalls> reads_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ContentStore& store, const std::string& socket) {
  if (Result<void> ready = prepare_directory(socket); !ready) return std::unexpected(ready.error());
  keep_grpc_up();
  auto server = std::make_unique<GrpcServer>(store);
  if (Result<void> listening = server->listen(std::filesystem::absolute(socket)); !listening)
    return std::unexpected(listening.error());
  return server;
}

}  // namespace turnstile::content
