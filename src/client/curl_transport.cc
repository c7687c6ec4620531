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

CurlTransport::CurlTransport(const ClientSettings& settings) : settings_(settings), identity_(settings) {
  // Never undone: other parts of the program may use curl, too.
  [[maybe_unused]] static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
}

std::expected<Answer, TransportError> CurlTransport::exchange(const Exchange& exchange) {
  auto answer = exchange_once(exchange);
  if (answer && answer->status == 401 && identity_.look_again()) return exchange_once(exchange);
  return answer;
}

std::expected<Answer, TransportError> CurlTransport::exchange_once(const Exchange& exchange) {
  const uint64_t generation = identity_.generation();
  std::unique_ptr<HttpConnection> connection = take(exchange.server, generation);
  if (!connection) {
    const std::optional<ServerUrl> url = parse_server_url(exchange.server);
    if (!url) return no_address(exchange.server);
    connection = std::make_unique<HttpConnection>(std::string(exchange.server), *url, settings_,
                                                  identity_.credential_for(*url), generation);
  }
  auto answer = connection->exchange(exchange);
  if (connection->reusable()) give_back(std::move(connection));
  return answer;
}

std::expected<Answer, TransportError> CurlTransport::stream(const Exchange& exchange, const Bytes& bytes) {
  const std::optional<ServerUrl> url = parse_server_url(exchange.server);
  if (!url) return no_address(exchange.server);
  (void)identity_.generation();  // looks
  auto answer = CurlStream(*url, settings_, identity_.credential_for(*url)).run(exchange, bytes);
  if (answer && answer->status == 401 && identity_.look_again())
    return CurlStream(*url, settings_, identity_.credential_for(*url)).run(exchange, bytes);
  return answer;
}

std::unique_ptr<HttpConnection> CurlTransport::take(std::string_view server, uint64_t generation) {
  const Locked lock(mutex_);
  const auto found = idle_.find(server);
  if (found == idle_.end()) return nullptr;
  if (!found->second.empty() && found->second.back()->generation() != generation) found->second.clear();
  if (found->second.empty()) return nullptr;
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
