// What an operator is told, over real HTTP, while blobs come and go.
#include "content/monitor.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "content/test_arbiter.h"
#include "content/test_directory.h"
#include "content/write_session.h"

namespace turnstile::content {
namespace {

// The whole answer, head and body, of one request.
std::string ask(const std::string& address, const std::string& path, const std::string& method = "GET") {
  const UniqueFd connection(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(connection.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  const std::string request = method + " " + path + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::send(connection.get(), request.data(), request.size(), 0), ssize_t(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t got; (got = ::recv(connection.get(), buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, size_t(got));
  return answer;
}

class MonitorTest : public testing::Test {
 protected:
  void SetUp() override {
    Outcome<std::unique_ptr<NodeState>> state = NodeState::open(directory_ / "state");
    ASSERT_TRUE(state) << state.error().message;
    node_ = std::make_unique<ContentStore>(open_blobs(directory_ / "root"), std::move(*state),
                                           std::make_unique<ScriptedArbiter>(script_), metrics_);
    ASSERT_TRUE(node_->start());
    Result<std::unique_ptr<Monitor>> started = Monitor::start("127.0.0.1:0", *node_, *metrics_);
    ASSERT_TRUE(started) << started.error().message;
    monitor_ = std::move(*started);
  }

  std::string get(const std::string& path) const { return ask(monitor_->address(), path); }
  // Of one series of /metrics, as text; empty: there is none.
  std::string series(const std::string& name) const {
    const std::string text = get("/metrics"), line = "\nturnstile_content_" + name + " ";
    const size_t at = text.find(line);
    if (at == std::string::npos) return {};
    return text.substr(at + line.size(), text.find('\n', at + 1) - at - line.size());
  }
  static std::string ref_of(const std::string& bytes) { return "default/1/layer-" + digest_of(bytes).text(); }
  Outcome<WriteAnswer> open(WriteSession& session, const std::string& ref) const {
    return session.handle(
        {.action = WriteAction::stat, .ref = ref, .expected = {}, .data = {}, .labels = {}});
  }
  void pull(const std::string& bytes, const std::string& sent) {
    WriteSession session(*node_);
    ASSERT_TRUE(open(session, ref_of(bytes)));
    (void)session.handle({.action = WriteAction::commit,
                          .ref = {},
                          .expected = digest_of(bytes).text(),
                          .data = sent,
                          .labels = {}});
  }

  TestDirectory directory_;
  ArbiterScript script_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  std::unique_ptr<ContentStore> node_;
  std::unique_ptr<Monitor> monitor_;
};

TEST_F(MonitorTest, APullAndAnAdoptionAreCountedWithTheirBytes) {
  pull("own", "own");
  put_file(blob_path(directory_ / "root", digest_of("another's")), "another's");
  pull("another's", "");
  EXPECT_EQ(series("pulled_blobs_total"), "1");
  EXPECT_EQ(series("pulled_bytes_total"), "3");
  EXPECT_EQ(series("received_bytes_total"), "3");
  EXPECT_EQ(series("adopted_blobs_total"), "1");
  EXPECT_EQ(series("saved_bytes_total"), "9");
  EXPECT_EQ(series("blobs"), "2");
  EXPECT_EQ(series("blob_bytes"), "12");
  pull("own", "");  // once more: neither pulled nor adopted
  EXPECT_EQ(series("pulled_blobs_total") + series("adopted_blobs_total"), "11");
  EXPECT_EQ(series("failed_writes_total"), "0");
}

TEST_F(MonitorTest, AWriteWithoutABlobIsAFailedOneAndIsUnderWayUntilItEnds) {
  pull("true", "lie!");
  EXPECT_EQ(series("failed_writes_total"), "1");
  EXPECT_EQ(series("received_bytes_total"), "4");
  EXPECT_EQ(series("ingests"), "0");
  {
    WriteSession session(*node_);
    ASSERT_TRUE(open(session, ref_of("x")));
    EXPECT_EQ(series("ingests"), "1");
  }
  EXPECT_EQ(series("ingests"), "0");
  EXPECT_EQ(series("failed_writes_total"), "2");
}

TEST_F(MonitorTest, ABlobThatCameMeanwhileIsNoFailedWrite) {
  WriteSession session(*node_);
  ASSERT_TRUE(open(session, ref_of("a")));
  pull("b", "b");
  {
    WriteSession late(*node_);
    ASSERT_TRUE(open(late, "default/2/unknown"));
    const Outcome<WriteAnswer> done = late.handle({.action = WriteAction::commit,
                                                   .ref = {},
                                                   .expected = digest_of("b").text(),
                                                   .data = "b",
                                                   .labels = {}});
    EXPECT_EQ(done.error().code, ErrorClass::already_exists);
  }
  EXPECT_EQ(series("failed_writes_total"), "0");
}

TEST_F(MonitorTest, WaitingAndRemovingAreCounted) {
  pull("own", "own");
  script_.write = Decision::Kind::wait;
  WriteSession session(*node_);
  EXPECT_EQ(open(session, ref_of("x")).error().code, ErrorClass::unavailable);
  EXPECT_EQ(series("waits_total"), "1");
  ASSERT_TRUE(node_->remove(digest_of("own")));
  EXPECT_EQ(series("uses_ended_total"), "1");
  EXPECT_EQ(series("removed_blobs_total"), "1");
  script_.write = Decision::Kind::write;
  script_.removal = Removal::Kind::settled;
  pull("own", "own");
  ASSERT_TRUE(node_->remove(digest_of("own")));
  EXPECT_EQ(series("uses_ended_total"), "2");
  EXPECT_EQ(series("removed_blobs_total"), "1") << "others use it";
  EXPECT_EQ(series("blobs"), "0");
}

TEST_F(MonitorTest, ItLivesAlsoWhenItIsNotReady) {
  EXPECT_NE(get("/readyz").find("200 OK"), std::string::npos) << "alone: nobody is missed";
  EXPECT_EQ(series("lock_server_up"), "");
  metrics_->set_lock_server(false, "Nobody listens at x:1.");
  const std::string not_ready = get("/readyz");
  EXPECT_NE(not_ready.find(" 503 "), std::string::npos) << not_ready;
  EXPECT_NE(not_ready.find("Nobody listens at x:1."), std::string::npos);
  EXPECT_EQ(series("lock_server_up"), "0");
  EXPECT_NE(get("/healthz").find("200 OK"), std::string::npos);
  metrics_->set_lock_server(true, {});
  EXPECT_NE(get("/readyz").find("200 OK"), std::string::npos);
  EXPECT_EQ(series("lock_server_up"), "1");
}

TEST_F(MonitorTest, WhatIsNotThereIsSaidSo) {
  EXPECT_NE(get("/").find(" 404 "), std::string::npos);
  EXPECT_NE(ask(monitor_->address(), "/metrics", "POST").find(" 405 "), std::string::npos);
  const Result<std::unique_ptr<Monitor>> second = Monitor::start(monitor_->address(), *node_, *metrics_);
  EXPECT_NE(second.error().message.find("--metrics-listen"), std::string::npos) << second.error().message;
}

}  // namespace
}  // namespace turnstile::content
