// Addresses, sharing out among loops, and the end of a server.
#include "http/server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "http/test_client.h"

namespace turnstile::http {
namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/turnstile-http-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

Result<void> try_start(std::vector<std::string> addresses) {
  TestHandler::Log log;
  Server server(
      ServerSettings{.listen = std::move(addresses), .loops = 1, .limits = {}, .handler = [&](Loop& loop) {
                       return std::make_unique<TestHandler>(loop, log);
                     }});
  return server.start();
}

std::string error_of(const Result<void>& result) { return result ? "" : result.error().message; }

TEST(Server, SaysWhatIsWrongWithAnAddress) {
  for (const char* bad : {"", "8086", "localhost", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536",
                          "::1:80", "[127.0.0.1]:0", "127.0.0.1:-1", "unix:"}) {
    EXPECT_EQ(error_of(try_start({bad})),
              "\"" + std::string(bad) +
                  "\" is not an address to listen on; give HOST:PORT, [IPV6-ADDRESS]:PORT or unix:PATH.");
  }
  TestServer first;
  EXPECT_EQ(error_of(try_start({"127.0.0.1:0", first.address()})),
            "Cannot listen on " + first.address() +
                ": another program already does. Stop it or choose another address.");
}

TEST(Server, SaysWhoHasConnected) {
  const Folder folder;
  const auto peer_at = [](const std::string& address) {
    TestServer server({}, 1, address);
    Client client(server.address());
    client.send(get("/peer"));
    return client.receive()->body;
  };
  EXPECT_EQ(peer_at("127.0.0.1:0"), "plain 127.0.0.1 - ");
  EXPECT_EQ(peer_at("[::1]:0"), "plain ::1 - ");
  EXPECT_EQ(peer_at("unix:" + folder / "socket"), "plain unix " + std::to_string(::getuid()) + " ");
}

TEST(Server, ListensOnIPv6) {
  TestServer server({}, 1, "[::1]:0");
  EXPECT_TRUE(server.address().starts_with("[::1]:")) << server.address();
  Client client(server.address());
  client.send(get("/echo"));
  EXPECT_EQ(client.receive()->status, 200u);
}

TEST(Server, ListensOnAUnixSocketThatItsGroupMayUse) {
  const Folder folder;
  const std::string path = folder / "socket";
  {
    TestServer server({}, 1, "unix:" + path);
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0660u);
    Client client(server.address());
    client.send(get("/echo"));
    EXPECT_EQ(client.receive()->status, 200u);
    EXPECT_NE(error_of(try_start({"unix:" + path})).find("another program already does"), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Server, ReplacesTheUnixSocketOfADeadServerAndNothingElse) {
  const Folder folder;
  const std::string stale = folder / "stale", file = folder / "file";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, stale.c_str(), sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  EXPECT_EQ(error_of(try_start({"unix:" + stale})), "");
  std::ofstream(file) << "precious";
  EXPECT_EQ(error_of(try_start({"unix:" + file})),
            "Cannot listen on unix:" + file + ": a file that is not a socket is there. Move it away.");
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(Server, DealsConnectionsOutEvenly) {
  TestServer server({}, 4);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Client>(server.address()));
    clients.back()->send(get("/echo"));
    EXPECT_EQ(clients.back()->receive()->status, 200u);
  }
  for (size_t i = 0; i < 4; ++i) {
    server.on_loop(
        [&](Loop& loop) {
          EXPECT_EQ(loop.index(), i);
          EXPECT_EQ(loop.connections(), 5u);
        },
        i);
  }
  EXPECT_EQ(server.server().statistics().connections_open.load(), 20u);
}

TEST(Server, NeverGivesTwoConnectionsTheSameId) {
  TestServer server;
  ConnectionId before = ConnectionId::none;
  for (int i = 0; i < 20; ++i) {
    Client client(server.address());
    client.send(get("/wait"));
    const ConnectionId id = server.await_waiting();
    EXPECT_NE(id, before);
    EXPECT_EQ(loop_of(id), 0u);
    server.on_loop([&](Loop& loop) {
      EXPECT_FALSE(loop.answer(before, Response()));
      EXPECT_TRUE(loop.answer(id, Response()));
    });
    before = id;
  }
}

TEST(Server, RunsPostedTasksInTheirOrder) {
  TestServer server;
  std::vector<int> order;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) server.server().loop(0).post([&order, i] { order.push_back(i); });
  });
  other.join();
  server.on_loop([](Loop&) {});
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(Server, StopsAcceptingButServesWhoIsThere) {
  const Folder folder;
  TestServer server({}, 2, "unix:" + (folder / "socket"));
  Client client(server.address());
  client.send(get("/echo"));
  EXPECT_EQ(client.receive()->status, 200u);
  server.server().stop_accepting();
  EXPECT_FALSE(std::filesystem::exists(folder / "socket"));
  client.send(get("/echo"));
  EXPECT_EQ(client.receive()->status, 200u);
}

TEST(Server, ShutdownClosesIdleConnectionsAndStreamsAndLetsAnswersOut) {
  TestServer server({}, 2);
  Client idle(server.address()), stream(server.address()), waiting(server.address());
  idle.send(get("/echo"));
  EXPECT_EQ(idle.receive()->status, 200u);
  stream.send(get("/stream"));
  server.await_stream();
  waiting.send(get("/wait") + get("/echo"));
  const ConnectionId id = server.await_waiting();
  std::thread ends([&] { server.server().shutdown(std::chrono::seconds(30)); });
  EXPECT_TRUE(idle.is_at_end());
  EXPECT_TRUE(stream.receive_all().ends_with(": hello\n\n\r\n0\r\n\r\n"));
  server.server().loop(loop_of(id)).post([&] {
    Response response;
    response.body = "last words";
    EXPECT_TRUE(server.server().loop(loop_of(id)).answer(id, response));
  });
  const auto answer = waiting.receive();
  EXPECT_EQ(answer->body, "last words");
  EXPECT_NE(answer->head.find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(waiting.is_at_end());
  ends.join();
  EXPECT_EQ(server.log().count("closed"), 0u);
  EXPECT_EQ(server.log().count("/echo"), 1u);
}

TEST(Server, ShutdownEndsInTimeAlthoughSomebodyWaits) {
  TestServer server;
  Client client(server.address());
  client.send(get("/wait"));
  server.await_waiting();
  server.server().shutdown(std::chrono::milliseconds(1));
  EXPECT_TRUE(client.is_at_end());
  EXPECT_EQ(server.log().count("closed"), 0u);
}

}  // namespace
}  // namespace turnstile::http
