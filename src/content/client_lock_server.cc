// See client_lock_server.h.
#include "content/client_lock_server.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/log.h"

namespace turnstile::content {
namespace {

using namespace std::chrono_literals;

class ClientHold final : public ServerHold {
 public:
  explicit ClientHold(Hold hold) : hold_(std::move(hold)) {}

  uint32_t attempt() const override { return hold_.attempt(); }
  std::string previous_error() const override { return hold_.previous_error(); }
  void report_progress(uint64_t done, uint64_t total) override { hold_.report_progress(done, total); }
  Expected<void> renew() override { return hold_.renew(); }
  // Not until when the lease lasts: a bond that has broken ends a hold earlier.
  bool is_believed() const override {
    return hold_.state() == HoldState::held && Hold::Clock::now() < hold_.believed_until();
  }
  Expected<bool> release(const WorkResult& result) override {
    const Expected<Released> released = hold_.release(result);
    if (!released) return std::unexpected(released.error());
    return released->confirmed;
  }

 private:
  Hold hold_;
};

// containerd's whole node waits for the answer, and comes again when it is told to wait. What ends a hold or
// confirms a use has more patience: a pull that is done depends on it.
LockClient::Clock::time_point soon() { return LockClient::Clock::now() + 2s; }

std::string waiting_text(const std::optional<WaitingStatus>& waiting) {
  if (!waiting || waiting->holder.empty()) return "another node is working on it";
  if (waiting->done && waiting->total && *waiting->total > 0)
    return fmt::format("{} is working on it ({} of {} bytes)", waiting->holder, *waiting->done,
                       *waiting->total);
  return fmt::format("{} is working on it", waiting->holder);
}

Expected<Grant> to_grant(Expected<LockResult> result) {
  if (!result) return std::unexpected(std::move(result.error()));
  Grant grant;
  if (result->acquired()) grant.hold = std::make_unique<ClientHold>(std::move(result->hold));
  grant.skipped = result->skipped();
  grant.queued = result->queued();
  grant.request_id = std::move(result->request_id);
  if (grant.queued) grant.waits_for = waiting_text(result->waiting);
  return grant;
}

}  // namespace

ClientSettings ClientLockServer::client_settings(const Settings& settings) {
  ClientSettings client;
  client.servers = settings.servers;
  client.node_id = settings.node;
  client.ca_file = settings.ca;
  client.certificate_file = settings.cert;
  client.key_file = settings.key;
  client.credential = settings.credential;
  client.credential_file = settings.credential_file;
  client.insecure_credential = settings.insecure_credential;
  client.on_notice = [](const std::string& line) {
    log_warning("connection to the lock server", {{"notice", line}});
  };
  client.request_timeout = 1s;
  client.max_retries = 1;
  return client;
}

Expected<Grant> ClientLockServer::try_lock(const LockRequest& request) {
  return to_grant(client_.try_lock(request, soon()));
}

Expected<uint32_t> ClientLockServer::release_reference(const std::string& resource) {
  const Expected<ReferenceStatus> left = once_.release_reference(resource);
  if (!left) return std::unexpected(left.error());
  return left->count;
}

Expected<uint32_t> ClientLockServer::references(const std::string& resource) {
  const Expected<ReferenceStatus> found = client_.references(resource);
  if (!found) return std::unexpected(found.error());
  return found->count;
}

Expected<Grant> ClientLockServer::lock(const LockRequest& request, LockClient::Clock::time_point deadline,
                                       const std::stop_token& stop) {
  return to_grant(client_.lock(request, deadline, stop));
}

// One that cannot be cancelled now ends by itself, when nobody claims it.
void ClientLockServer::cancel(const LockRequest& request) {
  (void)client_.cancel(request.operation, request.resource, request.request_id);
}

Expected<LaneStatus> ClientLockServer::status(const std::string& operation, const std::string& resource) {
  return client_.status(operation, resource);
}

std::vector<Expected<void>> ClientLockServer::add_references(const std::vector<std::string>& resources) {
  const auto all = client_.add_references(resources);
  if (!all) return std::vector<Expected<void>>(resources.size(), std::unexpected(all.error()));
  std::vector<Expected<void>> results;
  results.reserve(resources.size());
  for (const Expected<ReferenceStatus>& added : *all)
    results.push_back(added ? Expected<void>() : std::unexpected(added.error()));
  return results;
}

// One that stands by has no life that counts, and may pass on all that it is asked: but not what depends on
// the caller's connection (S49). So a hold that does is taken, of a lane that is nobody else's, and given
// back; the client stays with the server that has answered. A refusal of the leader's serves as well.
Expected<void> ClientLockServer::find_leader() {
  LockRequest request;
  request.operation = "find-leader";
  request.resource = "turnstile-content/" + client_.node_id();
  request.monitor = true;
  request.lease = 10s;
  Expected<LockResult> asked = client_.try_lock(request, soon());
  if (!asked && is_away(asked.error())) return std::unexpected(asked.error());
  if (asked && asked->acquired()) (void)asked->hold.release(WorkResult::succeeded());
  return {};
}

Expected<ServerLife> ClientLockServer::life() {
  Expected<std::string> version = client_.version(soon());
  if (!version) return std::unexpected(version.error());
  ServerLife life;
  const auto read_life = [&] { return RE2::PartialMatch(*version, R"re("life"\s*:\s*"(\w+)")re", &life.id); };
  if (!read_life()) {
    if (const Expected<void> found = find_leader(); !found) return std::unexpected(found.error());
    version = client_.version(soon());
    if (!version) return std::unexpected(version.error());
    if (!read_life())
      return std::unexpected(
          ClientError{ErrorCode::unavailable, "no server says in which life it is", {}, {}});
  }
  std::string references, store;
  int64_t uptime = 0;
  RE2::PartialMatch(*version, R"re("uptime_ms"\s*:\s*(\d+))re", &uptime);
  life.age = std::chrono::milliseconds(uptime);
  if (RE2::PartialMatch(*version, R"re("references"\s*:\s*"(\w+)")re", &references))
    life.keeps_references = references == "server";
  if (RE2::PartialMatch(*version, R"re("store"\s*:\s*"(\w+))re", &store)) life.forgets = store == "memory";
  return life;
}

}  // namespace turnstile::content
