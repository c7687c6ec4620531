// Where operators and Prometheus ask how the plugin is doing: a small HTTP server beside containerd's socket.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "content/content_store.h"
#include "content/metrics.h"
#include "http/server.h"

namespace turnstile::content {

// Answers /healthz (the process lives and serves what its node has), /readyz (and the lock server answers;
// else 503 and a sentence) and /metrics.
//
// Nothing here waits: what is told about the lock server is what the arbiter has last seen, so that a probe
// of the plugin's life does not fail because the server is slow. Threads: one of its own.
class Monitor {
 public:
  // `listen`: "HOST:PORT", "[::1]:PORT" or "unix:PATH"; port 0 is any. Both must outlive it.
  static Result<std::unique_ptr<Monitor>> start(const std::string& listen, const ContentStore& store,
                                                Metrics& metrics);

  const std::string& address() const { return server_.addresses().front(); }  // with the real port

 private:
  explicit Monitor(http::ServerSettings settings) : server_(std::move(settings)) {}

  http::Server server_;
};

}  // namespace turnstile::content
