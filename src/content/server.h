// The content service on its unix socket.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/unique_fd.h"
#include "content/content_store.h"
#include "rpc/server.h"

namespace turnstile::content {

// Serves a ContentStore while it lives.
//
// The socket has mode 0600 from the moment it exists, in a directory in which nobody else can replace it:
// whoever can write to it can make this node run any image, and whoever can stand in for it, too.
class Server {
 public:
  // `socket`: a path. Its directory is made if missing; one that others may write to is refused. `passed`:
  // that socket, if somebody else has made it already. `stalled_after` as in service.h.
  static Result<std::unique_ptr<Server>> start(ContentStore& store, const std::string& socket,
                                               UniqueFd passed = {},
                                               std::chrono::milliseconds stalled_after = {});

  // Takes no new calls, and gives those under way a moment to end.
  void stop();

 private:
  explicit Server(rpc::Methods methods) : methods_(std::move(methods)) {}

  const rpc::Methods methods_;
  std::unique_ptr<rpc::Server> calls_;
};

}  // namespace turnstile::content
