// Bytes that are not what a client should send: the server lives and serves the next one.
#include <poll.h>
#include <sys/socket.h>

#include <random>

#include "base/log.h"
#include "rpc/test_server.h"

namespace turnstile::rpc {
namespace {

class GarbageTest : public ServerTest {
 protected:
  GarbageTest() { set_log(LogLevel::off, LogFormat::text); }
  ~GarbageTest() { set_log(LogLevel::info, LogFormat::text); }

  // Sends all, reads what comes while it does, and goes.
  void send_raw(std::string_view bytes) {
    const UniqueFd socket = connect_to(socket_);
    ASSERT_TRUE(socket.is_open());
    std::array<char, 65536> buffer;
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;  // it has had enough
      if (sent > 0) bytes.remove_prefix(size_t(sent));
      while (::recv(socket.get(), buffer.data(), buffer.size(), 0) > 0) continue;
    }
  }
  // What a client says in a conversation with a bit of everything.
  std::string good_conversation() {
    TestClient client(socket_);
    client.call("/t/Echo", "hello");
    client.call("/t/EchoOnThread", std::string(3000, 'x'));
    client.call("/t/None", "x");
    client.reset(client.begin("/t/ReadAll"));
    const int32_t call = client.begin("/t/EchoOnThread");
    for (int i = 0; i < 5; ++i) client.send(call, framed("message"));
    client.end(call);
    client.await_end(call);
    return client.sent();
  }
};

TEST_F(GarbageTest, NoiseIsNotHttp2) {
  std::mt19937 random(7);
  std::string noise;
  for (int i = 0; i < 100'000; ++i) noise += char(random());
  send_raw(noise);
  send_raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  send_raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + noise);
  send_raw("");
  expect_served();
}

TEST_F(GarbageTest, AConversationMayBreakOffAnywhere) {
  const std::string good = good_conversation();
  for (size_t size = 0; size < good.size(); size += size < 600 ? 3 : 97) send_raw(good.substr(0, size));
  expect_served();
}

TEST_F(GarbageTest, MutatedConversationsDoNotHurtTheNextClient) {
  const std::string good = good_conversation();
  std::mt19937 random(42);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = 24 + random() % (bad.size() - 24);  // behind the preface, without which all ends
      switch (random() % 4) {
        case 0:
          bad[at] = char(random());
          break;
        case 1:
          bad[at] = char(bad[at] ^ 1 << random() % 8);
          break;
        case 2:
          bad.erase(at, 1 + random() % 20);
          break;
        default:
          bad.insert(at, bad.substr(24 + random() % (bad.size() - 24), random() % 40));
          break;
      }
    }
    send_raw(bad);
    if (i % 250 == 0) expect_served();
  }
  expect_served();
}

}  // namespace
}  // namespace turnstile::rpc
