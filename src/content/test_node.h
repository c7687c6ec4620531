// For the tests of arbitration: a node as its arbiter sees it, at a server inside the test.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "content/lock_arbiter.h"
#include "content/test_directory.h"
#include "turnstile/fake_server.h"

namespace turnstile::content {

using namespace std::chrono_literals;
using Kind = Decision::Kind;

inline const Digest kBlob = digest_of("a blob");
inline const std::string& blob_name() { return kBlob.text(); }

// A node as its arbiter sees it: a set of blobs, and files that it was told to remove.
class Node {
 public:
  Node(FakeServer& server, const std::string& name, LockArbiter::Options options = {})
      : watcher_(server.client(name + "-watcher", quick())) {
    options.uses = [this](const Digest& digest) {
      const Locked lock(mutex_);
      return used_.contains(digest);
    };
    options.is_there = [this](const Digest&) { return there.load(); };
    options.remove = [this](const Digest&) -> Outcome<void> {
      on_remove();
      ++removed;
      return {};
    };
    options.metrics = metrics;
    Outcome<std::shared_ptr<Unsettled>> unsettled = Unsettled::open(state_.path());
    EXPECT_TRUE(unsettled) << unsettled.error().message;
    unsettled_ = *unsettled;
    arbiter_ = std::make_unique<LockArbiter>(server.client(name, quick()), unsettled_, std::move(options));
  }

  LockArbiter* operator->() { return arbiter_.get(); }
  Unsettled& unsettled() { return *unsettled_; }

  // What a WriteSession does with a ticket when all goes well.
  void finish(Decision decision) {
    ASSERT_TRUE(decision.ticket) << decision.why;
    EXPECT_TRUE(decision.ticket->still_valid());
    set_uses(true);
    decision.ticket->succeeded();
  }
  Removal give_up() {
    set_uses(false);
    return arbiter_->forget(kBlob);
  }
  void set_uses(bool uses) {
    const Locked lock(mutex_);
    if (uses) used_.insert(kBlob);
    if (!uses) used_.erase(kBlob);
  }
  std::vector<std::string> users() { return watcher_.references(blob_name())->nodes; }
  LaneStatus lane(const char* operation = "pull") { return *watcher_.status(operation, blob_name()); }

  // As containerd does: again until the answer is another than "not now".
  Decision ask_until_told(bool visible = false) {
    for (;;) {
      Decision decision = visible ? arbiter_->begin_adoption(kBlob) : arbiter_->begin_write(kBlob, 6);
      if (decision.kind != Kind::wait) return decision;
      std::this_thread::sleep_for(2ms);
    }
  }

  std::atomic<int> removed{0};
  std::atomic<bool> there{false};           // a file, whatever the arbiter thinks
  std::function<void()> on_remove = [] {};  // to be set before anything is removed
  const std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();

 private:
  static ClientSettings quick() {
    ClientSettings settings;
    settings.max_retries = 1;
    settings.retry_interval = 1ms;
    return settings;
  }

  Mutex mutex_;
  std::set<Digest> used_ TS_GUARDED_BY(mutex_);
  TestDirectory state_;
  LockClient watcher_;
  std::shared_ptr<Unsettled> unsettled_;
  std::unique_ptr<LockArbiter> arbiter_;
};

// Fails when it takes longer than only something broken does.
template <class Condition>
void wait_until(Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "what was waited for has not come";
    std::this_thread::sleep_for(2ms);
  }
}

}  // namespace turnstile::content
