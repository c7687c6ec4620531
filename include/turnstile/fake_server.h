// A Turnstile server inside your test: the real rules, in memory, without a network.
//
//   turnstile::FakeServer server;
//   auto a = server.client("node-a"), b = server.client("node-b");
//
// Link turnstile::testing. The clients are the library's own; only the wires are missing.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "turnstile/export.h"
#include "turnstile/lock_client.h"

namespace turnstile {
inline namespace v1 {

struct FakeServerSettings {
  bool server_keeps_references = true;
  bool allow_multi_node_download = true;
  bool update_requires_no_ref = false;
};

// Threads: every member may be called by any number of threads.
class TURNSTILE_API FakeServer {
 public:
  class State;
  explicit FakeServer(FakeServerSettings settings = {});
  ~FakeServer();

  // A client of this server's. May outlive it, and is then told `unavailable`; a lock() that waits for its
  // turn, and would wait for a server to come back, ends with `cancelled`.
  LockClient client(const std::string& node_id, ClientSettings settings = {});
  // Lets time pass for the server: leases, grace and kept completions run out as if it had. The clients' own
  // clocks go on as always, and do not renew in between.
  void advance(std::chrono::milliseconds by);
  // Takes the server away, and brings it back with everything it knew. Away, its time goes on.
  void set_reachable(bool reachable);

 private:
  std::shared_ptr<State> state_;
};

}  // namespace v1
}  // namespace turnstile
