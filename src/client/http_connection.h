// One kept connection to a server, on which calls are made.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "client/answer_parser.h"
#include "client/curl_handle.h"
#include "client/timing.h"

namespace turnstile::client {

// libcurl connects (names, Unix sockets, TLS); the request is written, and the answer read, here.
//
// Why not all of it by libcurl: measured in turns with the same two exchanges on a bare socket
// (client_bench), a pair through libcurl took 3 times as long, through this 1.4 to 1.7 times on the same busy
// machine. Blocks its thread in recv(2), or in curl_multi_poll when the call can be stopped, because that one
// can be woken up. Threads: one at a time.
class HttpConnection {
 public:
  // `generation`: of the identity that it was made with.
  HttpConnection(std::string server, const ServerUrl& url, const ClientSettings& settings,
                 const std::string& credential, uint64_t generation);
  ~HttpConnection();

  std::expected<Answer, TransportError> exchange(const Exchange& exchange);
  // After an exchange: whether there may be another one.
  bool reusable() const { return reusable_; }
  const std::string& server() const { return server_; }
  uint64_t generation() const { return generation_; }

 private:
  // CURLE_OK, or what went wrong; CURLE_AGAIN stays inside.
  CURLcode connect(const Exchange& exchange);
  bool closed_meanwhile() const;
  CURLcode send(const Exchange& exchange);
  CURLcode receive(const Exchange& exchange, AnswerParser& parser);
  CURLcode wait(short events, const Exchange& exchange);
  // Part of the bytes, or CURLE_AGAIN.
  CURLcode send_some(std::string_view bytes, size_t& sent);
  CURLcode receive_some(std::span<char> buffer, size_t& got);
  // The same for the first bytes of an answer of a call that cannot be stopped, and waits for them.
  CURLcode await_some(std::span<char> buffer, size_t& got);
  void set_receive_timeout(Milliseconds timeout);
  void write_request(const Exchange& exchange);

  const std::string server_, base_;
  const bool tls_;
  const uint64_t generation_;
  const long connect_limit_;  // milliseconds
  std::array<char, CURL_ERROR_SIZE> detail_{};
  std::string fixed_head_;  // from the end of the target to the length
  std::string prefix_;      // of every target: the path of the URL
  Multi multi_;             // keeps the connection as long as the handle is in it
  Easy easy_;
  curl_socket_t socket_ = CURL_SOCKET_BAD;
  bool reusable_ = false;
  bool answered_ = false;            // since it was connected
  Steady::time_point answered_at_;   // when the last call that was answered began
  Milliseconds receive_timeout_{0};  // that the socket has

  std::string request_;
  Steady::time_point deadline_;
};

}  // namespace turnstile::client
