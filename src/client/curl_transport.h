// HTTP over kept connections: the Transport of a real client.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/sync.h"
#include "client/http_connection.h"
#include "client/identity.h"
#include "client/transport.h"
#include "turnstile/settings.h"

namespace turnstile::client {

// Keeps connections open for the next call. A call takes an idle connection of its server's, or makes one,
// and gives it back; so calls never wait for each other, and as many stay open as were under way at once (at
// most kIdle a server). A stream has a connection of its own.
// A connection shows the credential and the certificate that it was made with; when those change, others are
// made. An answer 401 has the files looked at once more at once.
// Proxies of the environment are not used: a lock service is asked directly, or by the URL of its proxy.
// Threads: every member may be called by any number of threads.
class CurlTransport : public Transport {
 public:
  explicit CurlTransport(const ClientSettings& settings);

  std::expected<Answer, TransportError> exchange(const Exchange& exchange) override;
  std::expected<Answer, TransportError> stream(const Exchange& exchange, const Bytes& bytes) override;

 private:
  static constexpr size_t kIdle = 32;
  using Connections = std::vector<std::unique_ptr<HttpConnection>>;

  std::expected<Answer, TransportError> exchange_once(const Exchange& exchange);
  std::unique_ptr<HttpConnection> take(std::string_view server, uint64_t generation);
  void give_back(std::unique_ptr<HttpConnection> connection);

  const ClientSettings settings_;
  Identity identity_;
  Mutex mutex_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Connections, Hash, std::equal_to<>> idle_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::client
