// What is special about TLS: who is greeted, who is not, and what is known of a client afterwards. That
// everything else is as without it is shown by the other tests, which run a second time with TLS.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "http/listener.h"
#include "http/test_certificates.h"
#include "http/test_client.h"

namespace turnstile::http {
namespace {

constexpr const char* kAddress = "https://127.0.0.1:0";

class Tls : public testing::Test {
 protected:
  std::string ask(Client& client, std::string_view path) {
    client.send(get(path));
    const auto answer = client.receive();
    return answer ? answer->body : "no answer";
  }
  ClientTls with_certificate(const std::string& name) const {
    return {.certificate = certificates_.folder() + "/" + name + ".crt",
            .key = certificates_.folder() + "/" + name + ".key"};
  }

  TestCertificates certificates_;
};

std::string plain(const std::string& address) { return address.substr(sizeof "https://" - 1); }

TEST_F(Tls, AnswersThroughItInEveryVersionThatIsSpoken) {
  TestServer server({}, 1, kAddress, certificates_.server());
  EXPECT_TRUE(server.address().starts_with("https://127.0.0.1:")) << server.address();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Client client(server.address(), ClientTls{.version = version});
    EXPECT_EQ(ask(client, "/peer"), "tls 127.0.0.1 - ");
    EXPECT_EQ(ask(client, "/large?300000").size(), 300000u);
  }
  EXPECT_EQ(server.server().statistics().tls_full.load(), 2u);
}

TEST_F(Tls, RefusesOldVersionsAndCiphersWithoutForwardSecrecy) {
  TestServer server({}, 1, kAddress, certificates_.server());
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION})
    EXPECT_FALSE(
        Client(server.address(), ClientTls{.version = version, .ciphers = "ALL:@SECLEVEL=0"}).is_greeted());
  for (const char* const ciphers :
       {"AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES128-SHA"})
    EXPECT_FALSE(
        Client(server.address(), ClientTls{.version = TLS1_2_VERSION, .ciphers = ciphers}).is_greeted());
  server.on_loop([](Loop&) {});  // the client hears of it before the turn in which it is counted ends
  EXPECT_EQ(server.server().statistics().tls_failed.load(), 5u);
}

TEST_F(Tls, DoesNotRenegotiate) {
  TestServer server({}, 1, kAddress, certificates_.server());
  Client client(server.address(), ClientTls{.version = TLS1_2_VERSION});
  EXPECT_EQ(ask(client, "/peer"), "tls 127.0.0.1 - ");
  SSL_renegotiate(client.ssl());
  EXPECT_LE(SSL_do_handshake(client.ssl()), 0);
}

// Each costs the server as much as a request, and there is no end to them.
TEST_F(Tls, CutsOffWhoSendsNothingButNewKeys) {
  TestServer server({}, 1, kAddress, certificates_.server());
  const auto renew_keys = [](Client& client, int times) {
    for (int i = 0; i < times; ++i) {
      if (SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return false;
      if (SSL_do_handshake(client.ssl()) != 1) return false;
    }
    return true;
  };
  Client some(server.address(), ClientTls{.version = TLS1_3_VERSION});
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(renew_keys(some, 20));
    EXPECT_EQ(ask(some, "/peer"), "tls 127.0.0.1 - ") << "who says something else, too, may";
  }
  Client many(server.address(), ClientTls{.version = TLS1_3_VERSION});
  EXPECT_EQ(ask(many, "/peer"), "tls 127.0.0.1 - ");
  renew_keys(many, 10'000);
  EXPECT_EQ(ask(many, "/peer"), "no answer");
}

TEST_F(Tls, SpeaksHttp11ByAlpnAndNothingElse) {
  using namespace std::string_view_literals;
  TestServer server({}, 1, kAddress, certificates_.server());
  Client both(server.address(), ClientTls{.protocols = "\2h2\10http/1.1"sv});
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(both.ssl(), &chosen, &size);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(chosen), size), "http/1.1");
  EXPECT_FALSE(Client(server.address(), ClientTls{.protocols = "\2h2"sv}).is_greeted());
}

TEST_F(Tls, ResumesASessionAndKnowsTheClientStill) {
  certificates_.issue("a", {.common_name = "node-a"});
  TestServer server({}, 1, kAddress, certificates_.server(true));
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ClientTls tls = with_certificate("a");
    tls.version = version;
    Client first(server.address(), tls);
    EXPECT_EQ(ask(first, "/peer"), "tls 127.0.0.1 - node-a");
    const std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> session(first.session(),
                                                                            &SSL_SESSION_free);
    Client second(server.address(), ClientTls{.version = version, .resume = session.get()});
    EXPECT_EQ(ask(second, "/peer"), "tls 127.0.0.1 - node-a");
    EXPECT_TRUE(SSL_session_reused(second.ssl()));
  }
  EXPECT_EQ(server.server().statistics().tls_resumed.load(), 2u);
  EXPECT_EQ(server.server().statistics().tls_full.load(), 2u);
}

TEST_F(Tls, NamesAClientByItsFirstDnsNameElseByItsCommonName) {
  certificates_.issue("both", {.common_name = "common", .dns_name = "node-b.example,DNS:other.example"});
  certificates_.issue("common", {.common_name = "node-c"});
  TestServer server({}, 1, kAddress, certificates_.server(true));
  Client both(server.address(), with_certificate("both")),
      common(server.address(), with_certificate("common"));
  Client none(server.address());
  EXPECT_EQ(ask(both, "/peer"), "tls 127.0.0.1 - node-b.example");
  EXPECT_EQ(ask(common, "/peer"), "tls 127.0.0.1 - node-c");
  EXPECT_EQ(ask(none, "/peer"), "tls 127.0.0.1 - ");
}

TEST_F(Tls, RefusesACertificateThatDoesNotVerifyOrCannotBeAName) {
  certificates_.issue("foreign", {.common_name = "node-a", .foreign = true});
  certificates_.issue("expired", {.common_name = "node-a", .valid_seconds = -10});
  certificates_.issue("strange", {.common_name = "node a\n"});
  TestServer server({}, 1, kAddress, certificates_.server(true));
  for (const char* const name : {"foreign", "expired", "strange"}) {
    Client client(server.address(), with_certificate(name));
    EXPECT_EQ(ask(client, "/peer"), "no answer") << name;
  }
}

TEST_F(Tls, DoesNotAskForCertificatesOrBelieveThemUnlessToldWhoseToBelieve) {
  certificates_.issue("a", {.common_name = "node-a"});
  TestServer server({}, 1, kAddress, certificates_.server(false));
  Client client(server.address(), with_certificate("a"));
  EXPECT_EQ(ask(client, "/peer"), "tls 127.0.0.1 - ");
}

TEST_F(Tls, SaysSoWhenItIsAskedWithoutTls) {
  TestServer server({}, 1, kAddress, certificates_.server());
  for (const std::string& request : {get("/echo"), post("/echo", "body")}) {
    Client client(plain(server.address()));
    client.send(request);
    const auto answer = client.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 400u);
    EXPECT_NE(answer->body.find("https://"), std::string::npos) << answer->body;
    EXPECT_TRUE(client.is_at_end());
  }
}

TEST_F(Tls, SaysSoWhenItIsGreetedWhereNoTlsIsSpoken) {
  TestServer server({}, 1, "http://127.0.0.1:0", certificates_.server());
  EXPECT_FALSE(server.address().starts_with("http")) << server.address();
  Client client(server.address());
  client.send(std::string_view("\x16\x03\x01\x02\x00\x01", 6));
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400u);
  EXPECT_NE(answer->body.find("TLS"), std::string::npos) << answer->body;
}

TEST_F(Tls, CutsOffWhoDoesNotFinishItsGreetingInTime) {
  Limits limits;
  limits.handshake_timeout = std::chrono::milliseconds(200);
  limits.header_timeout = std::chrono::hours(1);
  TestServer server(limits, 1, kAddress, certificates_.server());
  Client silent(plain(server.address())), half(plain(server.address()));
  half.send(std::string_view("\x16\x03\x01\x02\x00\x01\x00", 7));
  EXPECT_TRUE(silent.is_at_end());
  EXPECT_TRUE(half.is_at_end());
  EXPECT_EQ(server.server().statistics().timed_out.load(), 2u);
}

TEST_F(Tls, GivesTheFirstHeadATimeOfItsOwnBehindTheGreeting) {
  Limits limits;
  limits.header_timeout = std::chrono::milliseconds(30);
  TestServer server(limits, 1, kAddress, certificates_.server());
  Client greeted(server.address());
  const auto answer = greeted.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408u);
}

// Some are told. That nobody can have it as often as he likes is what keeps a flood from the processor.
TEST_F(Tls, GreetsOnlySomeOfThoseThatAreTooMany) {
  Limits limits;
  limits.max_connections = 1;
  TestServer server(limits, 1, kAddress, certificates_.server());
  Client only(server.address());
  EXPECT_EQ(ask(only, "/peer"), "tls 127.0.0.1 - ");
  Client told(server.address());
  const auto answer = told.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 429u);

  std::vector<std::unique_ptr<Client>> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(std::make_unique<Client>(plain(server.address())));
  while (server.server().statistics().refused < 201) std::this_thread::yield();
  server.on_loop([](Loop&) {});
  EXPECT_GT(std::ranges::count_if(flood, [](auto& client) { return client->has_input(); }), 0)
      << "all of them may have a handshake only to hear no";
}

TEST_F(Tls, AFloodOfGreetingsLeavesOthersTheirTurn) {
  TestServer server({}, 1, kAddress, certificates_.server());
  Client client(server.address());
  std::atomic<bool> stop{false};
  std::vector<std::jthread> flood;
  for (int i = 0; i < 4; ++i)
    flood.emplace_back([&] {
      while (!stop) Client(server.address());
    });
  for (int i = 0; i < 200; ++i) ASSERT_EQ(ask(client, "/peer"), "tls 127.0.0.1 - ");
  stop = true;
}

TEST_F(Tls, ReadsItsFilesAgainAndKeepsConnectionsAndOldFilesThatAreBetter) {
  TestServer server({}, 1, kAddress, certificates_.server());
  const auto shown = [](Client& client) { return SSL_get0_peer_certificate(client.ssl()); };
  Client before(server.address());
  ASSERT_TRUE(before.is_greeted());

  certificates_.renew_server();
  ASSERT_TRUE(server.server().reload_tls());
  Client after(server.address());
  EXPECT_NE(X509_cmp(shown(before), shown(after)), 0);
  EXPECT_EQ(ask(before, "/peer"), "tls 127.0.0.1 - ");

  std::ofstream(certificates_.server().key) << "no key\n";
  const Result<void> bad = server.server().reload_tls();
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("server.key"), std::string::npos) << bad.error().message;
  Client still(server.address());
  EXPECT_EQ(X509_cmp(shown(after), shown(still)), 0);
}

TEST_F(Tls, ATicketFromBeforeTheFilesWereReadAgainIsWorthNothing) {
  certificates_.issue("a", {.common_name = "node-a"});
  TestServer server({}, 1, kAddress, certificates_.server(true));
  Client first(server.address(), with_certificate("a"));
  EXPECT_EQ(ask(first, "/peer"), "tls 127.0.0.1 - node-a");
  const std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> session(first.session(), &SSL_SESSION_free);
  ASSERT_TRUE(server.server().reload_tls());
  Client second(server.address(), ClientTls{.resume = session.get()});
  EXPECT_EQ(ask(second, "/peer"), "tls 127.0.0.1 - ");
}

TEST_F(Tls, EndsWithAWordSoThatTheEndIsNotABreak) {
  TestServer server({}, 1, kAddress, certificates_.server());
  Client client(server.address());
  client.send(get("/close"));
  EXPECT_EQ(client.receive()->status, 200u);
  SSL_clear_options(client.ssl(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  char byte = 0;
  const int result = SSL_read(client.ssl(), &byte, 1);
  EXPECT_EQ(SSL_get_error(client.ssl(), result), SSL_ERROR_ZERO_RETURN);
}

TEST_F(Tls, SaysWhatIsWrongWithItsFiles) {
  const auto error_of = [&](TlsFiles files) {
    const auto loaded = TlsContext::load(std::move(files));
    return loaded ? std::string() : loaded.error().message;
  };
  TlsFiles files = certificates_.server();
  EXPECT_EQ(error_of(files), "");
  files.certificate = "/nowhere.crt";
  EXPECT_EQ(error_of(files), "Cannot use /nowhere.crt as the certificate: No such file or directory.");
  files = certificates_.server();
  files.key = certificates_.folder() + "/ca.key";
  EXPECT_NE(error_of(files).find("ca.key"), std::string::npos) << error_of(files);
  files = certificates_.server();
  files.client_ca = files.key;
  EXPECT_NE(error_of(files).find("CA of clients"), std::string::npos) << error_of(files);

  TestHandler::Log log;
  Server without({.listen = {kAddress}, .loops = 1, .limits = {}, .handler = [&](Loop& loop) {
                    return std::make_unique<TestHandler>(loop, log);
                  }});
  EXPECT_FALSE(without.start());
}

TEST_F(Tls, IsPerListener) {
  const std::string socket = "unix:" + certificates_.folder() + "/socket";
  TestHandler::Log log;
  Server server({.listen = {"127.0.0.1:0", "http://127.0.0.1:0", socket},
                 .loops = 1,
                 .limits = {},
                 .handler = [&](Loop& loop) { return std::make_unique<TestHandler>(loop, log); },
                 .tls = certificates_.server()});
  ASSERT_TRUE(server.start());
  std::vector<std::string> peers;
  for (const std::string& address : server.addresses()) {
    Client client(address);
    peers.push_back(ask(client, "/peer").substr(0, 5));
  }
  EXPECT_EQ(peers, (std::vector<std::string>{"tls 1", "plain", "plain"}));
  EXPECT_TRUE(is_loopback(server.addresses()[0]));
  EXPECT_FALSE(is_loopback("https://0.0.0.0:1"));
}

}  // namespace
}  // namespace turnstile::http
