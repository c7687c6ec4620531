// What becomes of a call that its client has given up: nothing of it that had not left yet.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "base/unique_fd.h"
#include "client/curl_transport.h"

namespace turnstile::client {
namespace {

// Takes connections, but reads nothing of them yet.
class SilentServer {
 public:
  SilentServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int small = 4096;  // so that a long body stays with the client
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener_.get(), 5), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  const std::string& url() const { return url_; }

  // All that arrives on the first connection. The error that ends it: 0 if the client has said all it had to.
  size_t read_all(int& error) {
    const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string buffer(64 * 1024, '\0');
    size_t sum = 0;
    for (;;) {
      const ssize_t got = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
      error = got < 0 ? errno : 0;
      if (got <= 0) return sum;
      sum += size_t(got);
    }
  }

 private:
  UniqueFd listener_;
  std::string url_;
};

// The kernel would go on sending it, even for a process that was killed, and the server might do long after
// the time-out what its client has asked for again since, or has no more use for.
TEST(GivenUp, ACallThatHasTimedOutTakesBackWhatWasNotSent) {
  SilentServer server;
  const std::string body(32 << 20, 'x');
  ClientSettings settings;
  settings.servers = {server.url()};
  CurlTransport transport(settings);
  Exchange exchange;
  exchange.server = server.url();
  exchange.post = true;
  exchange.target = "/unlock";
  exchange.body = body;
  exchange.timeout = std::chrono::milliseconds(500);
  const auto answer = transport.exchange(exchange);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().fault, Fault::timed_out);
  int error = 0;
  EXPECT_LT(server.read_all(error), body.size());
  EXPECT_EQ(error, ECONNRESET);
}

}  // namespace
}  // namespace turnstile::client
