// For the tests of arbitration: nodes that share a directory and a server, all of it inside the test.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "content/client_lock_server.h"
#include "content/lives.h"
#include "content/lock_arbiter.h"
#include "content/test_directory.h"
#include "turnstile/fake_server.h"

namespace turnstile::content {

using namespace std::chrono_literals;
using Kind = Decision::Kind;

inline const Digest kBlob = digest_of("a blob");
inline const std::string& blob_name() { return kBlob.text(); }

class Node;

// The server's real rules, and a root.
struct Cluster : FakeServer {
  using FakeServer::FakeServer;
  std::string root() const { return directory / "root"; }
  bool has_blob() const { return std::filesystem::exists(blob_path(root(), kBlob)); }
  // Lets the nodes do what their threads would. Fails when it takes longer than only something broken does.
  void wait_until(const std::function<bool()>& condition);

  TestDirectory directory;
  std::vector<Node*> nodes;
};

// A plugin without containerd: its life of one blob, driven by hand.
class Node {
 public:
  Node(Cluster& cluster, const std::string& name, LockArbiter::Options options = {},
       Lives::Options lives = {.own_patience = 50ms, .later = 1ms, .late = 1ms})
      : cluster_(cluster), watcher_(cluster.client(name + "-watcher", quick())) {
    options.metrics = metrics;
    options.node = name;
    options.settled_after = 0ms;
    Outcome<BlobStore> blobs = BlobStore::open({cluster.root(), {}, name, false});
    EXPECT_TRUE(blobs) << blobs.error().message;
    blobs_ = std::make_unique<BlobStore>(std::move(*blobs));
    Outcome<std::unique_ptr<NodeState>> state = NodeState::open(cluster.directory / ("state-" + name));
    EXPECT_TRUE(state) << state.error().message;
    state_ = std::move(*state);
    arbiter_ = std::make_unique<LockArbiter>(
        std::make_unique<ClientLockServer>(cluster.client(name, quick()), cluster.client(name, quick(0))),
        std::move(options));
    lives_ = std::make_unique<Lives>(*blobs_, *state_, *arbiter_, *metrics, lives);
    const Outcome<void> recovered = lives_->recover();
    EXPECT_TRUE(recovered) << recovered.error().message;
    cluster.nodes.push_back(this);
  }
  ~Node() { std::erase(cluster_.nodes, this); }

  LockArbiter* operator->() { return arbiter_.get(); }
  Lives& lives() { return *lives_; }
  const BlobStore& blobs() const { return *blobs_; }
  NodeState& state() { return *state_; }

  Lives::Answer ask(bool visible = false) { return lives_->ask(kBlob, visible, 6); }
  // As containerd does: again until the answer is another than "not now".
  Lives::Answer ask_until_told(bool visible = false) {
    for (;;) {
      Lives::Answer answer = ask(visible);
      if (answer.kind != Kind::wait) return answer;
      std::this_thread::sleep_for(2ms);
    }
  }
  // What a WriteSession does with it when all goes well.
  void finish(Lives::Answer answer) {
    ASSERT_TRUE(answer.ask) << answer.why;
    EXPECT_TRUE(answer.ask.still_valid());
    const Outcome<void> used = use(answer.ask);
    EXPECT_TRUE(used) << used.error().message;
  }
  Outcome<void> use(Lives::Ask& ask) {
    if (!cluster_.has_blob()) put_file(blob_path(cluster_.root(), kBlob), "a blob");
    const Outcome<bool> guarded = blobs_->guard(kBlob);
    if (!guarded) return std::unexpected(guarded.error());
    return lives_->use(ask, {kBlob, 6, Timestamp::now(), Timestamp::now(), {}}, *guarded);
  }
  // Ends the use, and asks what to do with the file; nothing is done with it.
  Removal::Kind give_up(std::unique_ptr<Ticket>* ticket = nullptr) {
    EXPECT_TRUE(state_->move(kBlob, Stage::in_use, Stage::leaving));
    EXPECT_TRUE(blobs_->unguard(kBlob));
    Removal removal = arbiter_->end_use(kBlob, cluster_.has_blob());
    if (ticket != nullptr) *ticket = std::move(removal.ticket);
    return removal.kind;
  }
  bool uses() const { return state_->size_of(kBlob).has_value(); }
  void work() { (void)lives_->work(); }
  // What is still to be told to the server, or to be cleared away.
  size_t left() const { return state_->totals(Stage::leaving).blobs + lives_->unconfirmed(); }
  uint64_t removed() const { return metrics->value(Count::removed_blobs); }

  std::vector<std::string> users() { return watcher_.references(blob_name())->nodes; }
  LaneStatus lane(const char* operation = "pull") { return *watcher_.status(operation, blob_name()); }

  const std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();

 private:
  static ClientSettings quick(int retries = 1) {
    ClientSettings settings;
    settings.max_retries = retries;
    settings.retry_interval = 1ms;
    return settings;
  }

  Cluster& cluster_;
  LockClient watcher_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<NodeState> state_;
  std::unique_ptr<LockArbiter> arbiter_;
  std::unique_ptr<Lives> lives_;
};

inline void Cluster::wait_until(const std::function<bool()>& condition) {
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "what was waited for has not come";
    for (Node* node : nodes) node->work();
    std::this_thread::sleep_for(2ms);
  }
}

}  // namespace turnstile::content
