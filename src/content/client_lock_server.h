// The lock server at the other end of a LockClient.
#pragma once

#include "content/lock_server.h"
#include "content/settings.h"

namespace turnstile::content {

// Threads: any.
class ClientLockServer final : public LockServer {
 public:
  // For a client that is asked inside a transaction of containerd's.
  static ClientSettings client_settings(const Settings& settings);

  // `once`: for the same server, and without retries.
  ClientLockServer(LockClient client, LockClient once) : client_(std::move(client)), once_(std::move(once)) {}

  Expected<Grant> try_lock(const LockRequest& request) override;
  Expected<uint32_t> release_reference(const std::string& resource) override;
  Expected<uint32_t> references(const std::string& resource) override;
  Expected<Grant> lock(const LockRequest& request, LockClient::Clock::time_point deadline,
                       const std::stop_token& stop) override;
  void cancel(const LockRequest& request) override;
  Expected<LaneStatus> status(const std::string& operation, const std::string& resource) override;
  std::vector<Expected<void>> add_references(const std::vector<std::string>& resources) override;
  Expected<ServerLife> life() override;

 private:
  Expected<void> find_leader();

  LockClient client_, once_;
};

}  // namespace turnstile::content
