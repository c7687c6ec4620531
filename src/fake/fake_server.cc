// The half of the fake that its users see: clients of the library's own, on wires that lead into memory.
#include "turnstile/fake_server.h"

#include "client/core.h"
#include "fake/service.h"

namespace turnstile {

class FakeServer::State {
 public:
  explicit State(const FakeServerSettings& settings)
      : service(fake::make_service({.server_keeps_references = settings.server_keeps_references,
                                    .allow_multi_node_download = settings.allow_multi_node_download,
                                    .update_requires_no_ref = settings.update_requires_no_ref})) {}

  const std::shared_ptr<fake::Service> service;
};

FakeServer::FakeServer(FakeServerSettings settings) : state_(std::make_shared<State>(settings)) {}
FakeServer::~FakeServer() { state_->service->shut_down(); }

LockClient FakeServer::client(const std::string& node_id, ClientSettings settings) {
  settings.node_id = node_id;
  settings.servers = {"the fake server"};
  return LockClient(std::make_shared<LockClient::Core>(std::move(settings), fake::connect(state_->service)));
}

void FakeServer::advance(std::chrono::milliseconds by) { state_->service->advance(by); }
void FakeServer::set_reachable(bool reachable) { state_->service->set_reachable(reachable); }

}  // namespace turnstile
