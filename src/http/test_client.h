// What the tests of this folder share: a handler that does what the request's path says, a server around it,
// and a small blocking client that sees every byte.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"

struct ssl_st;
struct ssl_session_st;

namespace turnstile::http {

// One answer as a client sees it.
struct Answer {
  unsigned status = 0;
  std::string head;  // with the status line and the empty line
  std::string body;
};

// How a client greets a server with TLS.
struct ClientTls {
  std::string certificate = {}, key = {};  // files; empty: it shows none
  int version = 0;                         // only this one, as OpenSSL counts them; 0: any
  const char* ciphers = nullptr;           // of TLS 1.2
  std::string_view protocols = {};         // to offer by ALPN, each behind its length
  ssl_session_st* resume = nullptr;        // as session() has given it
  std::function<void()> before_last = {};  // called before the last that TLS 1.3 has a client say
};

// Tests whose server speaks TLS because the environment says so (TestServer); others are skipped there.
bool tests_speak_tls();

// A blocking connection. Every wait ends after half a minute, with a failed test and not with a hanging one.
class Client {
 public:
  // As Server::addresses() gives it: with TLS where it begins with "https://".
  explicit Client(const std::string& address, int receive_buffer = 0)
      : Client(address, ClientTls{}, receive_buffer) {}
  Client(const std::string& address, const ClientTls& tls, int receive_buffer = 0);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // False: the other side no longer takes it.
  bool send(std::string_view bytes);
  void half_close();
  void reset();
  // The next complete answer; nothing when the connection ended before one. `has_body`: false after HEAD.
  std::optional<Answer> receive(bool has_body = true);
  // What comes up to the end of the connection.
  std::string receive_all();
  // Takes no more than so many of the bytes that come, and forgets them. False: the connection has ended.
  bool take(size_t most);
  // Waits until the received bytes contain `text`.
  bool receive_until(std::string_view text);
  // Whether the other side has closed, after all its bytes were read.
  bool is_at_end();
  // Whether something has come and is not read yet; does not wait.
  bool has_input();

  // With TLS: whether the handshake succeeded, and what came of it.
  bool is_greeted() const { return greeted_; }
  ssl_st* ssl() { return ssl_; }
  // To resume it later; the caller's to free.
  ssl_session_st* session();

 private:
  bool read_more();
  void greet(const ClientTls& tls);

  int fd_ = -1;
  ssl_st* ssl_ = nullptr;
  bool greeted_ = false;
  std::string input_;
};

// Understands the paths that the tests use; see handle().
//
// Threads: its loop's; what a test looks at is behind a mutex, and await() waits for it.
class TestHandler final : public Handler {
 public:
  // What handlers of all loops tell the test.
  struct Log {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> lines;
    ConnectionId last_waiting = ConnectionId::none, last_stream = ConnectionId::none;
    std::atomic<uint64_t> open{0};  // gates up to this one may be passed

    void add(std::string line);
    // Waits until `condition` holds (with the mutex held); false after half a minute.
    bool await(const std::function<bool(Log&)>& condition);
    bool await_line(const std::string& line);
    size_t count(const std::string& line);
  };

  TestHandler(Loop& loop, Log& log) : loop_(loop), log_(log) {}
  Handled handle(const Request& request, Responder& responder) override;
  void on_closed(ConnectionId connection) override;
  void on_timer(ConnectionId connection) override;
  bool may_leave(uint64_t gate) override { return gate <= log_.open; }
  void on_written(std::span<const Receipt> receipts) override;
  void on_drained(ConnectionId) override { log_.add("drained"); }
  std::string error_body(unsigned status, std::string_view message) override;

 private:
  Loop& loop_;
  Log& log_;
};

// A running server with TestHandlers.
class TestServer {
 public:
  // With TURNSTILE_TEST_TLS in the environment it speaks TLS, but on unix sockets.
  explicit TestServer(Limits limits = {}, unsigned loops = 1, std::string address = "127.0.0.1:0",
                      TlsFiles tls = {});

  Server& server() { return *server_; }
  const std::string& address() const { return server_->addresses().front(); }
  TestHandler::Log& log() { return log_; }
  // Runs `act` on the loop's thread and waits for it.
  void on_loop(const std::function<void(Loop&)>& act, size_t loop = 0);
  // Answers the last waiting request; what Loop::answer() returned.
  bool answer_waiting(std::string_view body, uint64_t gate = 0);
  // Lets pass what waits behind gates up to this one.
  void open_gate(uint64_t gate);
  Streamed stream(ConnectionId stream, const std::string& bytes);
  ConnectionId await_waiting();
  ConnectionId await_stream();
  // A connection whose first bytes are there when the server accepts it (with TLS: when it has greeted it),
  // so that no stall of the machine makes them later than a time-out that is meant for something else. One
  // loop.
  std::unique_ptr<Client> connect_with(std::string_view bytes);

 private:
  TestHandler::Log log_;
  std::unique_ptr<Server> server_;
};

inline std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n\r\n";
}
inline std::string post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

}  // namespace turnstile::http
