// The server is killed under 50 waiting clients and comes back: all of them end as they should, in order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <thread>

#include "server_process.h"

namespace turnstile {
namespace {

using namespace std::chrono_literals;

constexpr size_t kWaiters = 50;

// A directory of the test's own, gone when it ends.
class Directory {
 public:
  Directory() {
    char path[] = "/tmp/turnstile-test-XXXXXX";
    path_ = ::mkdtemp(path);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  std::string store() const { return "file:" + path_ + "/data"; }

 private:
  std::string path_;
};

class KilledServer : public testing::Test {
 protected:
  // One after another, so that the order of the queue is known. Each adds its name when it is done.
  void queue_up(const std::string& operation) {
    LockClient observer = server_.client("observer");
    for (size_t i = 0; i < kWaiters; ++i) {
      threads_.emplace_back([this, operation, i] { wait(operation, i); });
      ASSERT_TRUE(eventually([&] {
        const auto seen = observer.status(operation, "r");
        return seen && seen->queue_length > i;
      }));
    }
  }
  void wait(const std::string& operation, size_t index) {
    LockClient client = server_.client("node-" + std::to_string(index));
    Expected<LockResult> result = client.lock({.operation = operation, .resource = "r", .lease = 60s});
    {
      const std::lock_guard lock(mutex_);
      ended_.push_back(index);
      if (!result) errors_.push_back(result.error().message);
      if (result && result->skipped()) ++skipped_;
      if (result && result->acquired()) tokens_.push_back(result->hold.token());
    }
    if (!result || !result->acquired()) return;
    EXPECT_TRUE(result->hold.release(WorkResult::succeeded()));
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
  }

  Directory directory_;
  // Grants wait for their waiters to come back, however busy the machine is.
  ServerProcess server_{{"--store", directory_.store(), "--claim-timeout", "10m", "--bond-grace", "10m"}};
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::vector<size_t> ended_;
  std::vector<uint64_t> tokens_;
  std::vector<std::string> errors_;
  size_t skipped_ = 0;
};

TEST_F(KilledServer, FiftyWaitersOfAMutexAreGrantedInTheirOrder) {
  LockClient holder = server_.client("holder");
  Expected<LockResult> held = holder.lock({.operation = "own", .resource = "r", .lease = 60s});
  ASSERT_TRUE(held && held->acquired());
  queue_up("own");
  server_.restart();
  EXPECT_TRUE(held->hold.release(WorkResult::failed("the server was killed")));
  join();
  EXPECT_THAT(errors_, testing::IsEmpty());
  ASSERT_EQ(ended_.size(), kWaiters);
  for (size_t i = 0; i < kWaiters; ++i) EXPECT_EQ(ended_[i], i);
  EXPECT_TRUE(std::ranges::is_sorted(tokens_)) << "tokens only grow";
}

TEST_F(KilledServer, FiftyWaitersOfAPullSkipWhenItSucceeds) {
  LockClient holder = server_.client("holder");
  Expected<LockResult> held = holder.lock({.operation = "pull", .resource = "r", .lease = 60s});
  ASSERT_TRUE(held && held->acquired());
  queue_up("pull");
  server_.restart();
  EXPECT_TRUE(held->hold.release(WorkResult::succeeded()));
  join();
  EXPECT_THAT(errors_, testing::IsEmpty());
  EXPECT_EQ(skipped_, kWaiters);
  EXPECT_EQ(holder.references("r")->count, kWaiters + 1);
}

}  // namespace
}  // namespace turnstile
