// For the tests of this folder: a running server whose methods tell the test what happens to them.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <string>

#include "base/sync.h"
#include "rpc/server.h"
#include "rpc/test_client.h"

namespace turnstile::rpc {

// Named numbers that grow, and waiting for them. Threads: any.
class Events {
 public:
  void add(const std::string& name, size_t how_much = 1) {
    const Locked lock(mutex_);
    counts_[name] += how_much;
    changed_.notify_all();
  }
  size_t count(const std::string& name) {
    const Locked lock(mutex_);
    return counts_[name];
  }
  // False after half a minute.
  bool await(const std::string& name, size_t at_least = 1) {
    const Locked lock(mutex_);
    return changed_.wait_for(mutex_, std::chrono::seconds(30),
                             [&]() TS_NO_ANALYSIS { return counts_[name] >= at_least; });
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, size_t> counts_ TS_GUARDED_BY(mutex_);
};

inline Message message_of(std::string text) { return {std::move(text), nullptr, 0}; }

// A message whose bytes lie elsewhere: "<size>:xxxx…".
inline Message large_message(size_t size) {
  const std::shared_ptr<char[]> bytes(new char[size]);
  std::fill_n(bytes.get(), size, 'x');
  return {std::to_string(size) + ":", bytes, size};
}

class TestDirectory {
 public:
  TestDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "turnstile-rpc-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& below) const { return path_ / below; }

 private:
  std::filesystem::path path_;
};

class ServerTest : public testing::Test {
 protected:
  explicit ServerTest(Limits limits = {}) : limits_(limits) {}
  void SetUp() override {
    Result<std::unique_ptr<Server>> started = Server::start(socket_, methods_, limits_);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }
  void TearDown() override {
    events_.add("open");  // nothing waits for a test that is over
  }
  void expect_served() {
    TestClient client(socket_);
    EXPECT_EQ(client.call("/t/Echo", "still there").messages(), std::vector<std::string>{"still there"});
  }

  // Answers each message with itself, on the thread of the call's own.
  static Status echo_all(Call& call) {
    std::string message;
    while (call.read(message))
      if (!call.write(message_of(message))) return {Code::cancelled, ""};
    return {};
  }
  // Writes until nobody takes it.
  Status flood(Call& call) {
    while (call.write(large_message(64 << 10))) events_.add("written", 64 << 10);
    events_.add("flood ended");
    return {Code::cancelled, ""};
  }
  // Does nothing until the test opens it, then reads all.
  Status wait(Call& call) {
    events_.add("waiting");
    events_.await("open");
    std::string message;
    while (call.read(message)) events_.add("read", message.size());
    events_.add("wait ended");
    return {};
  }
  Status read_all(Call& call) {
    std::string message;
    events_.add("reading");
    while (call.read(message)) events_.add("read");
    events_.add("reading ended");
    return {};
  }

  using AtOnce = std::optional<Status>;
  const Limits limits_;
  Events events_;
  TestDirectory directory_;
  const std::string socket_ = directory_ / "socket";
  const Methods methods_{
      {"/t/Echo",
       {.run = echo_all,
        .run_at_once = [this](const std::string& request, Call& call) -> AtOnce {
          events_.add("at once");
          call.write(message_of(request));
          return Status{};
        }}},
      {"/t/EchoOnThread", {.run = echo_all}},
      {"/t/Decline",
       {.run = echo_all,
        .run_at_once = [this](const std::string&, Call&) -> AtOnce {
          events_.add("declined");
          return std::nullopt;
        }}},
      {"/t/Large",
       {.run = echo_all,
        .run_at_once = [this](const std::string& request, Call& call) -> AtOnce {
          call.write(large_message(std::stoul(request)));
          events_.add("large");
          return Status{};
        }}},
      {"/t/Fail",
       {.run = echo_all,
        .run_at_once = [](const std::string& request, Call&) -> AtOnce {
          return Status{Code::not_found, request};
        }}},
      {"/t/FailLate",
       {.run =
            [](Call& call) {
              std::string message;
              call.read(message);
              call.write(message_of("some"));
              return Status{Code::out_of_range, message};
            }}},
      {"/t/SomeThenWait",
       {.run =
            [this](Call& call) {
              call.write(message_of("some"));
              events_.await("open");
              return Status{Code::out_of_range, "no more"};
            }}},
      {"/t/Flood", {.run = [this](Call& call) { return flood(call); }}},
      {"/t/Wait", {.run = [this](Call& call) { return wait(call); }}},
      {"/t/ReadAll", {.run = [this](Call& call) { return read_all(call); }}},
  };
  std::unique_ptr<Server> server_;
};

}  // namespace turnstile::rpc
