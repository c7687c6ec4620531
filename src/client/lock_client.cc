#include "turnstile/lock_client.h"

#include <algorithm>

#include "client/core.h"
#include "client/curl_transport.h"
#include "client/identity.h"
#include "client/server_url.h"
#include "client/waiting.h"

namespace turnstile {

using client::cancel_body;
using client::fail;
using client::JsonObject;
using client::Requester;
using client::Target;

Expected<LockClient> LockClient::create(ClientSettings settings) {
  if (settings.servers.empty()) return fail(ErrorCode::invalid, "no server is named");
  for (const std::string& server : settings.servers) {
    if (!client::parse_server_url(server)) {
      return fail(ErrorCode::invalid,
                  "\"" + server + "\" is no address: use http://HOST:PORT, https://HOST:PORT or unix:PATH");
    }
  }
  if (settings.certificate_file.empty() != settings.key_file.empty()) {
    return fail(ErrorCode::invalid, "a client certificate and its key belong together: give both or none");
  }
  const auto control = [](char c) { return uint8_t(c) <= 0x20 || c == 0x7f; };
  if (std::ranges::any_of(settings.credential, control)) {
    return fail(ErrorCode::invalid,
                "the credential has control characters: is there a line end in its file?");
  }
  if (!settings.credential_file.empty()) {
    if (!settings.credential.empty())
      return fail(ErrorCode::invalid, "a credential is given itself or by credential_file: not both");
    if (const auto read = client::read_credential(settings.credential_file); !read)
      return fail(ErrorCode::invalid, read.error());
  }
  const bool has_credential = !settings.credential.empty() || !settings.credential_file.empty();
  for (const std::string& server : settings.servers) {
    if (has_credential && !settings.insecure_credential && !client::parse_server_url(server)->is_private()) {
      return fail(ErrorCode::invalid,
                  "a credential is not sent to " + server +
                      ", where anybody on the network can read it: use https://, or set insecure_credential");
    }
  }
  for (const std::chrono::milliseconds time :
       {settings.request_timeout, settings.retry_interval, settings.hand_over, settings.long_poll,
        settings.heartbeat, settings.status_interval}) {
    if (time.count() <= 0) return fail(ErrorCode::invalid, "times in the settings must be above 0");
  }
  if (settings.max_retries < 0) return fail(ErrorCode::invalid, "max_retries must not be below 0");
  auto transport = std::make_shared<client::CurlTransport>(settings);
  return LockClient(std::make_shared<Core>(std::move(settings), std::move(transport)));
}

LockClient::LockClient(std::shared_ptr<Core> core) : core_(std::move(core)) {}
LockClient::LockClient(LockClient&&) noexcept = default;
LockClient& LockClient::operator=(LockClient&&) noexcept = default;
LockClient::~LockClient() = default;

const std::string& LockClient::node_id() const { return core_->settings().node_id; }

Expected<LockResult> LockClient::lock(const LockRequest& request, Clock::time_point deadline,
                                      std::stop_token stop) {
  if (auto fault = client::fault_of(request)) return fail(ErrorCode::invalid, std::move(*fault));
  return client::Waiting(*core_, request, deadline, std::move(stop)).run();
}

Expected<Released> LockClient::unlock(const std::string& operation, const std::string& resource,
                                      const WorkResult& result, uint64_t token,
                                      const std::string& request_id) {
  return client::unlock(core_->caller(), core_->requester(operation, resource, request_id), token, result)
      .released;
}

Expected<std::chrono::milliseconds> LockClient::renew(const std::string& operation,
                                                      const std::string& resource, uint64_t token,
                                                      std::chrono::milliseconds lease,
                                                      const std::string& request_id) {
  const Requester who = core_->requester(operation, resource, request_id);
  return core_->post("/renew", client::renew_body(who, token, lease, std::nullopt), client::read_renew);
}

Expected<bool> LockClient::cancel(const std::string& operation, const std::string& resource,
                                  const std::string& request_id) {
  return core_->post("/cancel", cancel_body(core_->requester(operation, resource, request_id)),
                     client::read_cancel);
}

Expected<LaneStatus> LockClient::status(const std::string& operation, const std::string& resource) {
  Expected<client::OwnStatus> own =
      core_->get(Target("/lock/status").with("type", operation).with("resource_id", resource).take(),
                 client::read_status);
  if (!own) return std::unexpected(std::move(own.error()));
  return std::move(own->lane);
}

Expected<LanePage> LockClient::list(const LaneFilter& filter) {
  return core_->get(Target("/locks")
                        .with("prefix", filter.prefix)
                        .with("type", filter.operation)
                        .with("state", filter.state)
                        .with("limit", std::to_string(filter.limit))
                        .with("cursor", filter.cursor)
                        .take(),
                    client::read_list);
}

Expected<std::string> LockClient::break_hold(const std::string& operation, const std::string& resource,
                                             const std::string& reason, uint64_t token) {
  JsonObject body;
  body.text("type", operation).text("resource_id", resource).text("reason", reason);
  if (token != 0) body.number("token", token);
  Expected<std::string> node = core_->post_once("/admin/break", body.take(), client::read_break);
  // It was never the caller's own: `not_held` is the server's refusal, not a loss.
  if (!node && node.error().code == ErrorCode::lost) node.error().code = ErrorCode::refused;
  return node;
}

Expected<bool> LockClient::forget(const std::string& operation, const std::string& resource) {
  return core_->post_once("/admin/forget",
                          JsonObject().text("type", operation).text("resource_id", resource).take(),
                          client::read_forgotten);
}

Expected<ReferenceStatus> LockClient::references(const std::string& resource) {
  return core_->get(Target("/refs").with("resource_id", resource).take(), client::read_references);
}

Expected<ReferenceStatus> LockClient::add_reference(const std::string& resource) {
  return core_->post("/refs/add", client::reference_body(resource, node_id()), client::read_references);
}

Expected<ReferenceStatus> LockClient::release_reference(const std::string& resource) {
  return core_->post("/refs/release", client::reference_body(resource, node_id()), client::read_references);
}

Expected<uint32_t> LockClient::release_node(const std::string& node_id) {
  return core_->post("/refs/release_node", JsonObject().text("node_id", node_id).take(),
                     client::read_released_node);
}

Expected<Subscription> LockClient::subscribe(const SubscribeRequest& request,
                                             std::function<void(const Event&)> on_event,
                                             std::function<void(const ClientError&)> on_end) {
  if (!request.resource.empty() && request.operation.empty()) {
    return fail(ErrorCode::invalid, "a lane is an operation and a resource: name both");
  }
  return core_->subscribe(request, std::move(on_event), std::move(on_end));
}

Expected<std::string> LockClient::version(Clock::time_point deadline, std::stop_token stop) {
  const auto reply = core_->caller().call({.post = false,
                                           .target = "/version",
                                           .body = {},
                                           .of_leader = false,
                                           .deadline = deadline,
                                           .stop = std::move(stop)});
  if (!reply) return std::unexpected(reply.error().error);
  if (!client::is_json_object(reply->body)) return std::unexpected(client::not_turnstile(reply->server, 200));
  return reply->body;
}

}  // namespace turnstile
