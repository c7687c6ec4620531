#include "client/curl_transport.h"

#include "client/curl_stream.h"

namespace turnstile::client {
namespace {

std::unexpected<TransportError> no_address(std::string_view server) {
  return std::unexpected(
      TransportError{.fault = Fault::misconfigured,
                     .maybe_sent = false,
                     .message = "\"" + std::string(server) + "\" is no address of a server"});
}

}  // namespace

CurlTransport::CurlTransport(const ClientSettings& settings) : settings_(settings) {
  // Never undone: other parts of the program may use curl, too.
  [[maybe_unused]] static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
}

std::expected<Answer, TransportError> CurlTransport::exchange(const Exchange& exchange) {
  std::unique_ptr<HttpConnection> connection = take(exchange.server);
  if (!connection) {
    const std::optional<ServerUrl> url = parse_server_url(exchange.server);
    if (!url) return no_address(exchange.server);
    connection = std::make_unique<HttpConnection>(std::string(exchange.server), *url, settings_);
  }
  auto answer = connection->exchange(exchange);
  if (connection->reusable()) give_back(std::move(connection));
  return answer;
}

std::expected<Answer, TransportError> CurlTransport::stream(const Exchange& exchange, const Bytes& bytes) {
  const std::optional<ServerUrl> url = parse_server_url(exchange.server);
  if (!url) return no_address(exchange.server);
  return CurlStream(*url, settings_).run(exchange, bytes);
}

std::unique_ptr<HttpConnection> CurlTransport::take(std::string_view server) {
  const Locked lock(mutex_);
  const auto found = idle_.find(server);
  if (found == idle_.end() || found->second.empty()) return nullptr;
  // The last one given back: it is the least likely to have been closed meanwhile.
  std::unique_ptr<HttpConnection> connection = std::move(found->second.back());
  found->second.pop_back();
  return connection;
}

void CurlTransport::give_back(std::unique_ptr<HttpConnection> connection) {
  const Locked lock(mutex_);
  Connections& idle = idle_[connection->server()];
  if (idle.size() < kIdle) idle.push_back(std::move(connection));
}

}  // namespace turnstile::client
