// The line to the member that leads: with a real etcd, and with peers that hang up, say nothing or talk
// nonsense.
#include "etcd/call_line.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "etcd/members.h"
#include "etcd/test_etcd.h"

namespace turnstile::etcd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::kEventually;
using testing::TestEtcd;

SteadyTime in(milliseconds time) { return steady_clock::now() + time; }

etcdserverpb::TxnRequest put_call(const std::string& key, const std::string& value) {
  etcdserverpb::TxnRequest request;
  etcdserverpb::PutRequest& one = *request.add_success()->mutable_request_put();
  one.set_key(key);
  one.set_value(value);
  return request;
}

// Transactions through `members`, until one has gone by a line. Each is told what it was answered.
template <class Told>
bool eventually_by_line(Members& members, const Told& told) {
  for (const SteadyTime end = in(kEventually); steady_clock::now() < end;) {
    const uint64_t before = members.calls_by_line();
    etcdserverpb::TxnResponse response;
    told(members.ask(Members::Kind::changes, Members::Repeat::never, kEventually,
                     [&](Member& member, Asking& asking) {
                       return members.transact(member, asking, put_call("ts/a", "x"), response);
                     }));
    if (members.calls_by_line() > before) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST(EtcdCallLine, TransactionsGoByTheLineOfTheMemberThatLeads) {
  TestEtcd etcd({.members = 3});
  Members members(etcd.options(), grpc::InsecureChannelCredentials());
  EXPECT_TRUE(
      eventually_by_line(members, [](const auto& answer) { EXPECT_TRUE(answer) << answer.error().message; }));
  const uint64_t before = members.calls_by_line();
  Revision last = 0;
  for (int i = 0; i < 300; ++i) {  // each with a PING of etcd's, which wants its answer
    etcdserverpb::TxnResponse response;
    const auto asked = members.ask(Members::Kind::changes, Members::Repeat::never, kEventually,
                                   [&](Member& member, Asking& asking) {
                                     return members.transact(member, asking, put_call("b", "x"), response);
                                   });
    ASSERT_TRUE(asked) << asked.error().message;
    EXPECT_TRUE(response.succeeded());
    EXPECT_GT(response.header().revision(), last);
    last = response.header().revision();
  }
  EXPECT_GT(members.calls_by_line(), before + 200) << "it is one line, which goes on";
}

TEST(EtcdCallLine, AMemberThatStartsAnewHasALineAgain) {
  TestEtcd etcd;
  Members members(etcd.options(), grpc::InsecureChannelCredentials());
  ASSERT_TRUE(eventually_by_line(members, [](const auto&) {}));
  etcd.kill(0);
  etcd.start(0);
  etcd.wait_until_healthy();
  bool worked = false;
  EXPECT_TRUE(eventually_by_line(members, [&](const auto& answer) { worked = answer.has_value(); }));
  EXPECT_TRUE(worked);
}

TEST(EtcdCallLine, TlsAndCertificatesAreTheSame) {
  TestEtcd etcd({.tls = true, .asks_for_certificate = true});
  const Options options = etcd.options();
  const LineTls tls = make_line_tls(options);
  ASSERT_TRUE(tls);
  const std::string authority = options.endpoints[0].substr(std::string("https://").size());
  auto line = CallLine::open("ipv4:" + authority, tls.get(), authority, in(kEventually));
  ASSERT_TRUE(line);
  etcdserverpb::TxnResponse response;
  EXPECT_TRUE(line->transact(put_call("a", std::string(300'000, 'x')), "", in(kEventually), response).ok());
  EXPECT_TRUE(line->tend(in(kEventually)));

  const std::string port = authority.substr(authority.rfind(':'));
  EXPECT_FALSE(CallLine::open("ipv4:" + authority, tls.get(), "other.example" + port, in(seconds(5))))
      << "its certificate is for another name";
  Options wrong_ca = options;
  wrong_ca.ca_file = (etcd.directory() / "tls" / "other-ca.pem").string();
  EXPECT_FALSE(CallLine::open("ipv4:" + authority, make_line_tls(wrong_ca).get(), authority, in(seconds(5))));
}

TEST(EtcdCallLine, AnErrorIsToldWithItsTextAndTheLineGoesOn) {
  TestEtcd etcd;
  const std::string authority = etcd.options().endpoints[0].substr(std::string("http://").size());
  auto line = CallLine::open("ipv4:" + authority, nullptr, authority, in(kEventually));
  ASSERT_TRUE(line);
  etcdserverpb::TxnRequest twice = put_call("a", "x");
  *twice.add_success() = twice.success(0);
  etcdserverpb::TxnResponse response;
  const grpc::Status status = line->transact(twice, "", in(kEventually), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "etcdserver: duplicate key given in txn request");
  EXPECT_TRUE(line->is_usable());
  EXPECT_TRUE(line->transact(put_call("a", "x"), "", in(kEventually), response).ok());
}

// Accepts once, says `greeting`, takes `patience` bytes of what it is told, and then hangs up or keeps
// silent.
class Peer {
 public:
  Peer(std::string_view greeting, size_t patience, bool hangs_up) {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), any, size) != 0 || ::listen(listener_.get(), 1) != 0 ||
        ::getsockname(listener_.get(), any, &size) != 0)
      throw std::runtime_error("no port");
    authority_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, greeting, patience, hangs_up] {
      const UniqueFd caller(::accept(listener_.get(), nullptr, nullptr));
      (void)!::write(caller.get(), greeting.data(), greeting.size());
      char bytes[256];
      for (size_t heard = 0; heard < patience;) {
        const ssize_t got = ::read(caller.get(), bytes, sizeof bytes);
        if (got <= 0) return;
        heard += size_t(got);
      }
      while (!hangs_up && ::read(caller.get(), bytes, sizeof bytes) > 0) {
      }
    });
  }
  ~Peer() { thread_.join(); }

  std::unique_ptr<CallLine> open(milliseconds within) const {
    return CallLine::open("ipv4:" + authority_, nullptr, authority_, in(within));
  }

 private:
  UniqueFd listener_;
  std::string authority_;
  std::thread thread_;
};

constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);
constexpr size_t kAcknowledged = 60;  // bytes: our greeting has 58, and tend() then acknowledges the peer's
constexpr size_t kCall = 200;         // part of a call has come, too

TEST(EtcdCallLine, HungUpOnDuringACallItDoesNotKnowTheOutcome) {
  const Peer peer(kSettings, kCall, true);
  auto line = peer.open(kEventually);
  ASSERT_TRUE(line);
  etcdserverpb::TxnResponse response;
  const grpc::Status status =
      line->transact(put_call("a", std::string(300, 'x')), "", in(kEventually), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_FALSE(line->is_usable());
}

TEST(EtcdCallLine, ASilentPeerCostsTheDeadlineAndNoMore) {
  const Peer peer(kSettings, kCall, false);
  auto line = peer.open(kEventually);
  ASSERT_TRUE(line);
  etcdserverpb::TxnResponse response;
  const SteadyTime begin = steady_clock::now();
  const grpc::Status status = line->transact(put_call("a", "x"), "", in(milliseconds(200)), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
  EXPECT_GE(steady_clock::now() - begin, milliseconds(200));
  EXPECT_LT(steady_clock::now() - begin, seconds(10)) << "not the time of a call, or of a connection";
  EXPECT_FALSE(line->is_usable()) << "a late answer must not be taken for the next one's";
}

TEST(EtcdCallLine, AnIdleLineThatWasHungUpOnIsNotUsed) {
  const Peer peer(kSettings, kAcknowledged, true);
  auto line = peer.open(kEventually);
  ASSERT_TRUE(line);
  for (const SteadyTime end = in(kEventually); line->tend(end) && steady_clock::now() < end;)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_FALSE(line->is_usable());
}

TEST(EtcdCallLine, WhoDoesNotSpeakHttp2HasNoLine) {
  EXPECT_FALSE(Peer("HTTP/1.1 400 Bad Request\r\n\r\n", 1, true).open(kEventually));
  EXPECT_FALSE(Peer("", 1, false).open(milliseconds(100)));
  EXPECT_FALSE(CallLine::open("ipv4:127.0.0.1:1", nullptr, "127.0.0.1:1", in(seconds(5))));
  EXPECT_FALSE(CallLine::open("unix:/nowhere", nullptr, "x", in(seconds(5))));
}

}  // namespace
}  // namespace turnstile::etcd
