// One event stream, from its request to its end, by libcurl.
#pragma once

#include <array>
#include <expected>

#include "client/curl_handle.h"
#include "client/server_url.h"
#include "client/timing.h"
#include "client/transport.h"

namespace turnstile::client {

// Used once. curl's own transfer: a stream is long, so its overhead does not matter, and its reading of
// chunks as they come does. Blocks its thread in curl_multi_poll, which a stop wakes up. Threads: one.
class CurlStream {
 public:
  CurlStream(const ServerUrl& url, const ClientSettings& settings, const std::string& credential);

  std::expected<Answer, TransportError> run(const Exchange& exchange, const Transport::Bytes& bytes);

 private:
  static size_t on_bytes(char* data, size_t size, size_t count, void* self);
  CURLcode perform(const Exchange& exchange);
  Milliseconds until_too_silent(const Exchange& exchange) const;

  const std::string base_;
  std::array<char, CURL_ERROR_SIZE> detail_{};
  HeaderList headers_;
  Multi multi_;
  Easy easy_;  // behind multi_: goes first

  std::string body_;  // of an answer that is no stream
  const Transport::Bytes* bytes_ = nullptr;
  bool enough_ = false, any_byte_ = false;
  Steady::time_point last_byte_;
};

}  // namespace turnstile::client
