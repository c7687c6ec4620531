// Keys of session tickets, at times that the test chooses, and that OpenSSL asks them.
#include "http/ticket_keys.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>

#include "http/test_certificates.h"
#include "http/tls_context.h"

namespace turnstile::http {
namespace {

constexpr Duration kLife = TicketKeys::kLife, kMoment = std::chrono::seconds(1);

struct TestTime final : TimeSource {
  Duration steady() const override { return passed; }
  Duration passed{};
};

struct FreeTls {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
using Session = std::unique_ptr<SSL_SESSION, FreeTls>;

// A handshake without sockets: what one side writes the other reads.
struct Handshake {
  Handshake(const TlsContext& server_context, int version, SSL_SESSION* resume)
      : context(SSL_CTX_new(TLS_client_method())), server(server_context.new_session()) {
    SSL_CTX_set_min_proto_version(context.get(), version);
    SSL_CTX_set_max_proto_version(context.get(), version);
    client.reset(SSL_new(context.get()));
    if (resume) SSL_set_session(client.get(), resume);
    BIO *client_end = nullptr, *server_end = nullptr;
    BIO_new_bio_pair(&client_end, 0, &server_end, 0);
    SSL_set_bio(client.get(), client_end, client_end);
    SSL_set_bio(server.get(), server_end, server_end);
    SSL_set_connect_state(client.get());
    SSL_set_accept_state(server.get());
    for (int steps = 0; steps < 10; ++steps) {
      SSL_do_handshake(client.get());
      SSL_do_handshake(server.get());
    }
    char byte = 0;
    SSL_read(client.get(), &byte, 1);  // takes the ticket of TLS 1.3
  }
  // One that ends without a word takes its session with it.
  ~Handshake() {
    SSL_set_shutdown(client.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_set_shutdown(server.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }
  bool is_done() const { return SSL_is_init_finished(client.get()) && SSL_is_init_finished(server.get()); }
  bool is_resumed() const { return is_done() && SSL_session_reused(server.get()) == 1; }
  Session session() const { return Session(SSL_get1_session(client.get())); }

  std::unique_ptr<SSL_CTX, FreeTls> context;
  std::unique_ptr<SSL, FreeTls> client, server;
};

TEST(TicketKeys, ChangeByTimeAndOpenForAsLongAgain) {
  TestTime time;
  TicketKeys keys(time);
  const auto first = keys.newest();
  ASSERT_TRUE(first);
  time.passed = kLife - kMoment;
  EXPECT_EQ(keys.newest()->name, first->name);
  EXPECT_TRUE(keys.find(first->name)->seals);

  time.passed = kLife;
  const auto second = keys.newest();
  EXPECT_NE(second->name, first->name);
  EXPECT_NE(second->cipher, first->cipher);
  EXPECT_NE(second->mac, first->mac);
  time.passed = 2 * kLife - kMoment;
  ASSERT_TRUE(keys.find(first->name));
  EXPECT_FALSE(keys.find(first->name)->seals);
  EXPECT_EQ(keys.find(first->name)->key.cipher, first->cipher);

  time.passed = 2 * kLife;
  EXPECT_FALSE(keys.find(first->name));
  EXPECT_TRUE(keys.find(second->name));
}

TEST(TicketKeys, OneThatNobodyHasAskedForInTimeOpensNothing) {
  TestTime time;
  TicketKeys keys(time);
  const auto first = keys.newest();
  time.passed = 2 * kLife;
  EXPECT_FALSE(keys.find(first->name));
}

TEST(TicketKeys, AreThoseOfTls12And13) {
  const TestCertificates certificates;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TestTime time;
    const auto context = TlsContext::load(certificates.server(), time);
    ASSERT_TRUE(context);
    const Handshake first(**context, version, nullptr);
    ASSERT_TRUE(first.is_done());
    EXPECT_FALSE(first.is_resumed());
    const Session session = first.session();
    EXPECT_TRUE(Handshake(**context, version, session.get()).is_resumed());
    time.passed = 2 * kLife - kMoment;
    EXPECT_TRUE(Handshake(**context, version, session.get()).is_resumed());
    time.passed = 3 * kLife;
    const Handshake late(**context, version, session.get());
    EXPECT_TRUE(late.is_done());
    EXPECT_FALSE(late.is_resumed()) << "version " << version;
  }
}

}  // namespace
}  // namespace turnstile::http
