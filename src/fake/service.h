// What the two halves of the fake know of each other. They are two because the public types and the engine's
// have the same names (LockRequest, Hold, …): fake_server.cc sees only the public ones, memory_service.cc
// only the engine's, and this file neither.
#pragma once

#include <chrono>
#include <memory>

#include "client/transport.h"

namespace turnstile::fake {

struct ServiceSettings {
  bool server_keeps_references = true;
  bool allow_multi_node_download = true;
  bool update_requires_no_ref = false;
};

// The server. Threads: every member may be called by any number of threads.
class Service {
 public:
  virtual ~Service() = default;

  virtual void advance(std::chrono::milliseconds by) = 0;
  virtual void set_reachable(bool reachable) = 0;
  // Sends everybody away, for ever. Does not wait for them.
  virtual void shut_down() = 0;
};

std::shared_ptr<Service> make_service(const ServiceSettings& settings);

// One client's wires to it; the service lives as long as any of them. A lock with monitor:true lives by
// them, as it lives by the connections of a real client's.
std::shared_ptr<client::Transport> connect(const std::shared_ptr<Service>& service);

}  // namespace turnstile::fake
