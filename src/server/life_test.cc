// A life of the state ends and another begins while the process and its connections stay.
#include <gtest/gtest.h>

#include <filesystem>

#include "http/test_client.h"
#include "server/app.h"

namespace turnstile {
namespace {

using http::Client;
using http::post;

constexpr const char* kLane = R"({"type":"own","resource_id":"r","node_id":"a"})";
constexpr const char* kPoll = R"({"type":"own","resource_id":"r","node_id":"b","wait_ms":60000})";

class LifeTest : public ::testing::Test {
 protected:
  LifeTest()
      : directory_(std::filesystem::temp_directory_path() / ("turnstile-life-" + std::to_string(getpid()))) {
    Settings settings;
    settings.listen = {"127.0.0.1:0"};
    settings.hosts = {"test"};  // what the test client calls it
    settings.store = "file:" + directory_.string();
    settings.threads = 2;
    app_ = std::make_unique<App>(settings);
    const Result<void> started = app_->start(ignore_);
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
  }
  ~LifeTest() override {
    app_.reset();
    std::filesystem::remove_all(directory_);
  }
  std::string address() const { return app_->addresses().front(); }

  const std::filesystem::path directory_;
  const Service::OnFailed ignore_ = [](const Error&) {};
  std::unique_ptr<App> app_;
};

TEST_F(LifeTest, ConnectionsStayAndWhatWasHeldIsHeldInTheNextLife) {
  Client client(address());
  client.send(post("/lock", kLane));
  EXPECT_NE(client.receive()->body.find("\"acquired\":true"), std::string::npos);
  app_->end_life();
  client.send(post("/lock", kLane));
  const auto between = client.receive();
  EXPECT_EQ(between->status, 503u);
  EXPECT_NE(between->body.find("store_unavailable"), std::string::npos);
  client.send(http::get("/healthz"));
  EXPECT_EQ(client.receive()->status, 200u);
  client.send(http::get("/readyz"));
  EXPECT_EQ(client.receive()->status, 503u);

  ASSERT_TRUE(app_->begin_life(ignore_));
  client.send(post("/unlock", kLane));
  EXPECT_NE(client.receive()->body.find("\"released\":true"), std::string::npos);
}

TEST_F(LifeTest, WhoWaitsIsToldToAskAgainAndKeepsItsPlace) {
  Client holder(address()), waiter(address()), stream(address());
  holder.send(post("/lock", kLane));
  holder.receive();
  waiter.send(post("/lock", kPoll));
  stream.send(http::get("/events"));
  EXPECT_TRUE(stream.receive_until(": turnstile"));
  for (std::string body; body.find("\"node_id\":\"b\"") == std::string::npos;) {
    holder.send(post("/lock/status", kLane));
    body = holder.receive()->body;
  }
  app_->end_life();
  EXPECT_EQ(waiter.receive()->status, 503u);
  stream.receive_all();
  EXPECT_TRUE(stream.is_at_end());

  ASSERT_TRUE(app_->begin_life(ignore_));
  Client again(address());
  again.send(post("/lock", kPoll));
  holder.send(post("/unlock", kLane));
  EXPECT_NE(holder.receive()->body.find("\"next\":\"b\""), std::string::npos);
  EXPECT_NE(again.receive()->body.find("\"acquired\":true"), std::string::npos);
}

TEST_F(LifeTest, ManyLivesUnderLoadLeaveNothingBehind) {
  std::atomic<bool> ended{false};
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      const std::string lane =
          R"({"type":"own","resource_id":"l)" + std::to_string(i) + R"(","node_id":"n"})";
      while (!ended) {  // connections whose answers waited for a life that ended are closed
        Client client(address());
        for (int call = 0; call < 50 && client.send(post(call % 2 ? "/unlock" : "/lock", lane)); ++call)
          if (!client.receive()) break;
      }
    });
  }
  for (int life = 0; life < 20; ++life) {
    app_->end_life();
    ASSERT_TRUE(app_->begin_life(ignore_));
  }
  ended = true;
}

}  // namespace
}  // namespace turnstile
