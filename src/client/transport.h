// The wires of a client: one exchange at a time, or one stream. An interface, so that the rules of waiting,
// retrying and renewing can be tested without a network, and so that a server in the same process can be
// asked without one. It uses none of the public headers: an implementation may include the server's.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace turnstile::client {

// What is asked. The views must live until the call returns.
struct Exchange {
  std::string_view server{};             // as in ClientSettings::servers
  bool post = false;                     // else GET
  std::string_view target{};             // path and query: "/lock/status?type=pull&…"
  std::string_view body{};               // JSON, with post
  std::string_view last_event_id{};      // of a stream that goes on; else empty
  std::chrono::milliseconds timeout{0};  // for the whole exchange; 0: none
  std::chrono::milliseconds silence{0};  // of a stream: how long it may say nothing; 0: for ever
  std::chrono::milliseconds first_byte{
      0};  // of a stream: until when the first byte must have come; 0: silence
  std::stop_token stop{};
};

struct Answer {
  int status = 0;
  std::string body{};
  std::optional<std::chrono::seconds> retry_after{};
};

enum class Fault : uint8_t {
  unreachable,    // no connection: nothing was sent
  broken,         // the connection broke before the answer was complete
  timed_out,      // also: a stream was silent for too long
  stopped,        // the caller's stop token
  too_large,      // the answer is above the bound
  untrusted,      // its certificate does not verify: nothing was sent
  misconfigured,  // a certificate file that cannot be read, a server name that makes no sense
};

struct TransportError {
  Fault fault = Fault::unreachable;
  bool maybe_sent = true;  // the server may have done what it was asked
  std::string message;
};

// Threads: every member may be called by any number of threads.
class Transport {
 public:
  using Bytes = std::function<bool(std::string_view)>;  // false: enough, end the stream

  virtual ~Transport() = default;

  virtual std::expected<Answer, TransportError> exchange(const Exchange& exchange) = 0;
  // Hands over what arrives, on this thread, until the server ends the stream (an answer of status 200
  // without a body), `bytes` returns false (the same), it is stopped or it fails. `bytes` may call
  // exchange(). An answer other than 200 is returned with its body, and `bytes` is not called.
  virtual std::expected<Answer, TransportError> stream(const Exchange& exchange, const Bytes& bytes) = 0;
};

}  // namespace turnstile::client
