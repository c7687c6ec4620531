// A gRPC client for the tests of this folder: nghttp2's client side, blocking, and able to misbehave: it can
// stop reading, keep its windows shut, and send whatever bytes a test likes.
#pragma once

#include <nghttp2/nghttp2.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace turnstile::rpc {

// A message with gRPC's five bytes in front.
std::string framed(std::string_view message);

// A connected socket, non-blocking; not open when nobody listens.
UniqueFd connect_to(const std::string& socket);

// What has come of a call's answer.
struct Answer {
  std::map<std::string, std::string> headers, trailers;
  std::string bytes;  // of DATA frames
  bool ended = false;
  uint32_t reset = 0;  // the code it ended with

  // gRPC's status; -1 before it is there.
  int status() const;
  std::string text() const;
  std::vector<std::string> messages() const;
};

// Threads: one. Every wait ends after half a minute, with a failed test and not with a hanging one.
class TestClient {
 public:
  struct Options {
    uint32_t window = 1 << 20;  // of each call
    bool grants = true;         // window again for what has come
    bool acknowledges = true;   // the server's settings
  };
  explicit TestClient(const std::string& socket) : TestClient(socket, Options{}) {}
  TestClient(const std::string& socket, Options options);
  ~TestClient();

  // Begins a call.
  int32_t begin(const std::string& path) {
    return begin({{":method", "POST"},
                  {":scheme", "http"},
                  {":authority", "test"},
                  {":path", path},
                  {"content-type", "application/grpc"},
                  {"te", "trailers"}});
  }
  int32_t begin(const std::vector<std::pair<std::string, std::string>>& headers);
  // Bytes of the request; they leave as windows allow, while this client waits for something.
  void send(int32_t call, std::string_view bytes);
  void end(int32_t call);
  void reset(int32_t call);
  size_t unsent(int32_t call) const;

  // A call with one message, up to its end.
  Answer call(const std::string& path, std::string_view message);
  // Sends and receives until the condition holds; false: the server has gone, or too long.
  bool await(const std::function<bool()>& condition);
  bool await_end(int32_t call) {
    return await([&] { return answer(call).ended; });
  }
  const Answer& answer(int32_t call) { return calls_.at(call)->answer; }

  void stop_reading() { reads_ = false; }
  void read_again() { reads_ = true; }
  // The server has closed the connection.
  bool gone() const { return gone_; }
  bool was_told_to_go() const { return goaway_; }
  // May still be sent: windows of both the call and the connection.
  int32_t room(int32_t call) const;
  // All that this client has sent.
  const std::string& sent() const { return sent_; }
  int fd() const { return socket_.get(); }

 private:
  struct Callbacks;
  struct Free {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };
  struct Call {
    size_t unsent() const { return request.size() - sent; }

    std::string request;
    size_t sent = 0;
    bool ended = false;
    Answer answer;
  };

  void flush();
  void receive();

  UniqueFd socket_;
  std::unique_ptr<nghttp2_session, Free> session_;
  std::map<int32_t, std::unique_ptr<Call>> calls_;
  std::string unsent_, sent_;
  bool reads_ = true, gone_ = false, goaway_ = false, deaf_to_settings_ = false;
};

}  // namespace turnstile::rpc
