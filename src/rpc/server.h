// gRPC calls on a unix socket: just what a plugin of containerd's needs.
//
// Not gRPC's own C++ library: measured beside it, a call of 32 KiB costs a fraction of the CPU time here, and
// ThreadSanitizer sees all of it (docs/decisions/0021-grpc-on-nghttp2.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/unique_fd.h"
#include "rpc/call.h"

namespace turnstile::rpc {

struct Limits {
  size_t max_message = 16 << 20;  // of the client's
  uint32_t calls_of_connection = 256;
  size_t call_threads = 512;
  size_t connections = 256;
};

// Serves while it lives. Threads: one loop, and one for each call whose method may wait.
class Server {
 public:
  // `socket`: a path, on which nobody may be listening yet; a socket that a dead process left is replaced. It
  // has mode 0600 from the moment it exists. `methods` must outlive the server.
  static Result<std::unique_ptr<Server>> start(const std::string& socket, const Methods& methods,
                                               const Limits& limits = {});
  // `listener`: one that listens already, of whom others may keep a descriptor; then it listens on when this
  // server has ended.
  static Result<std::unique_ptr<Server>> start(UniqueFd listener, const Methods& methods,
                                               const Limits& limits = {});
  virtual ~Server() = default;

  // Takes no new calls, lets those under way end, and cancels what has not ended after `grace`. Returns when
  // no method runs any more.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace turnstile::rpc
