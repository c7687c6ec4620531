// What errors mean that a real etcd says only now and then: said here by a server of our own.
#include "etcd/failures.h"

#include <etcd_rpc.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "etcd/connect.h"

namespace turnstile::etcd {
namespace {

using std::chrono::seconds;

// An etcd that has one thing to say.
class OneAnswer final : public etcdserverpb::KV::Service, public etcdserverpb::Maintenance::Service {
 public:
  OneAnswer(std::string version, grpc::Status answer)
      : version_(std::move(version)), answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(static_cast<etcdserverpb::KV::Service*>(this));
    builder.RegisterService(static_cast<etcdserverpb::Maintenance::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int calls = 0;

 private:
  grpc::Status Txn(grpc::ServerContext*, const etcdserverpb::TxnRequest*,
                   etcdserverpb::TxnResponse*) override {
    ++calls;
    return answer_;
  }
  grpc::Status Range(grpc::ServerContext*, const etcdserverpb::RangeRequest*,
                     etcdserverpb::RangeResponse*) override {
    ++calls;
    return answer_;
  }
  grpc::Status Status(grpc::ServerContext*, const etcdserverpb::StatusRequest*,
                      etcdserverpb::StatusResponse* response) override {
    response->set_version(version_);
    return grpc::Status::OK;
  }

  const std::string version_;
  const grpc::Status answer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct Case {
  grpc::StatusCode code;
  const char* text;
  Failure failure;
};

TEST(EtcdFailures, EachTextHasItsMeaning) {
  using enum grpc::StatusCode;
  for (const Case& each : {
           Case{UNAVAILABLE, "etcdserver: request timed out", Failure::unknown},
           Case{UNAVAILABLE, "etcdserver: request timed out, possibly due to previous leader failure",
                Failure::unknown},
           Case{UNAVAILABLE, "etcdserver: leader changed", Failure::unknown},
           Case{UNAVAILABLE, "etcdserver: server stopped", Failure::unknown},
           Case{UNAVAILABLE, "Socket closed", Failure::unknown},
           Case{DEADLINE_EXCEEDED, "Deadline Exceeded", Failure::unknown},
           Case{CANCELLED, "context canceled", Failure::unknown},
           Case{UNKNOWN, "something new", Failure::unknown},
           Case{UNAVAILABLE, "etcdserver: no leader", Failure::not_done},
           Case{UNKNOWN, "raft proposal dropped", Failure::not_done},
           Case{RESOURCE_EXHAUSTED, "etcdserver: too many requests", Failure::not_done},
           Case{RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", Failure::no_space},
           Case{OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted", Failure::compacted},
           Case{NOT_FOUND, "etcdserver: requested lease not found", Failure::gone},
           Case{PERMISSION_DENIED, "etcdserver: permission denied", Failure::denied},
           Case{INVALID_ARGUMENT, "etcdserver: authentication failed, invalid user ID or password",
                Failure::denied},
           Case{INVALID_ARGUMENT, "etcdserver: request is too large", Failure::refused},
           Case{INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request", Failure::refused},
           Case{UNIMPLEMENTED, "unknown service etcdserverpb.KV", Failure::refused},
       }) {
    OneAnswer etcd("3.4.23", grpc::Status(each.code, each.text));
    const auto client = *connect({.endpoints = {etcd.url()}});
    const auto answer = client->commit({.puts = {{"a", "b"}}}, seconds(30));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().failure, each.failure) << answer.error().message;
    EXPECT_EQ(etcd.calls, 1) << each.text;
  }
}

TEST(EtcdFailures, AnUnknownOutcomeIsNotSentToAnotherMember) {
  const grpc::Status timed_out(grpc::StatusCode::UNAVAILABLE, "etcdserver: request timed out");
  const grpc::Status no_leader(grpc::StatusCode::UNAVAILABLE, "etcdserver: no leader");
  OneAnswer unsure("3.4.23", timed_out), alone("3.4.23", no_leader), well("3.5.0", grpc::Status::OK);
  const Transaction put{.puts = {{"a", "b"}}};

  auto client = *connect({.endpoints = {unsure.url(), well.url()}});
  EXPECT_EQ(client->commit(put, seconds(30)).error().failure, Failure::unknown);
  EXPECT_EQ(well.calls, 0);
  EXPECT_TRUE(client->commit(put, seconds(30))) << "the caller's own next call is asked of another";
  EXPECT_EQ(unsure.calls, 1);

  client = *connect({.endpoints = {"http://127.0.0.1:1", alone.url(), well.url()}});
  EXPECT_TRUE(client->commit(put, seconds(30))) << "what was certainly not done is sent on";
  EXPECT_EQ(alone.calls, 1);
  client = *connect({.endpoints = {unsure.url(), well.url()}});
  EXPECT_TRUE(client->range({.begin = "a"}, seconds(30))) << "a read changes nothing";
}

TEST(EtcdFailures, AnEtcdThatIsTooOldIsRefusedByOneLine) {
  OneAnswer old("3.3.27", grpc::Status::OK);
  const auto client = *connect({.endpoints = {old.url()}});
  const auto answer = client->range({.begin = "a"}, seconds(30));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().failure, Failure::refused);
  EXPECT_EQ(answer.error().message,
            "etcd " + old.url() + ": its version is 3.3.27, and 3.4 is the oldest that serves");
  EXPECT_EQ(old.calls, 0);
  EXPECT_FALSE(too_old("3.4.0") || too_old("3.5.12") || too_old("4.0.0-rc1"));
  EXPECT_TRUE(too_old("3.3.99") && too_old("2.3.8") && too_old("") && too_old("new"));
}

TEST(EtcdFailures, AUserThatIsNotLetInIsDecidedByOneMemberAndACertificateByAll) {
  EXPECT_TRUE(is_about_user(call_error(
      {grpc::StatusCode::INVALID_ARGUMENT, "etcdserver: authentication failed, invalid user ID or password"},
      "http://a")));
  EXPECT_TRUE(is_about_user(
      call_error({grpc::StatusCode::PERMISSION_DENIED, "etcdserver: permission denied"}, "http://a")));
  EXPECT_FALSE(is_about_user(
      call_error({grpc::StatusCode::UNAVAILABLE, "SSL_ERROR_SSL: certificate verify failed"}, "http://a")));
  EXPECT_FALSE(is_about_user(
      call_error({grpc::StatusCode::UNAUTHENTICATED, "etcdserver: invalid auth token"}, "http://a")));
}

}  // namespace
}  // namespace turnstile::etcd
