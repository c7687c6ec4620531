// Nodes that count their uses themselves, at a server that keeps no references: files shared by all of them,
// and the server's real locks.
#include "content/shared_references.h"
#include "content/test_node.h"

namespace turnstile::content {
namespace {

using Nodes = std::set<std::string>;

// Lets something happen in the middle of a node's step: once, behind the next get() or before the next
// change.
class InterruptedStorage final : public RefCountStorage {
 public:
  explicit InterruptedStorage(std::shared_ptr<RefCountStorage> real) : real_(std::move(real)) {}

  Expected<ReferenceCount> get(const std::string& resource) const override {
    Expected<ReferenceCount> count = real_->get(resource);
    if (const auto now = std::exchange(behind_get, nullptr)) now();
    return count;
  }
  Expected<void> update(const std::string& resource,
                        const std::function<bool(ReferenceCount&)>& change) override {
    if (const auto now = std::exchange(before_change, nullptr)) now();
    return real_->update(resource, change);
  }
  Expected<void> set(const std::string& resource, const ReferenceCount& count) override {
    return real_->set(resource, count);
  }
  Expected<void> erase(const std::string& resource) override { return real_->erase(resource); }
  Expected<void> for_each(
      const std::function<bool(const std::string&, const ReferenceCount&)>& visit) const override {
    return real_->for_each(visit);
  }

  mutable std::function<void()> behind_get, before_change;

 private:
  const std::shared_ptr<RefCountStorage> real_;
};

class UsesCounted : public testing::Test {
 protected:
  std::shared_ptr<SharedReferences> open_storage() {
    Outcome<std::unique_ptr<SharedReferences>> opened = SharedReferences::open(directory_ / "refs", true);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  std::unique_ptr<Node> node(const std::string& name, std::shared_ptr<RefCountStorage> storage = nullptr) {
    LockArbiter::Options options;
    options.references = std::make_shared<NodeReferences>(storage ? storage : open_storage(), name);
    return std::make_unique<Node>(cluster_, name, std::move(options));
  }
  Nodes users() { return manager_.get_ref_count(blob_name())->nodes; }
  static Lives::Answer write(Node& node) { return node.ask(); }

  TestDirectory directory_;
  Cluster cluster_{FakeServerSettings{.server_keeps_references = false}};
  RefCountManager manager_{open_storage()};
};

TEST_F(UsesCounted, TheLastUserRemovesAndTheOthersKeep) {
  const auto a = node("a"), b = node("b"), c = node("c");
  a->finish(write(*a));
  b->finish(b->ask_until_told());
  c->finish(c->ask_until_told(true));
  EXPECT_EQ(users(), (Nodes{"a", "b", "c"}));
  EXPECT_EQ(a->give_up(), Removal::Kind::settled);
  EXPECT_EQ(c->give_up(), Removal::Kind::settled);
  EXPECT_EQ(users(), Nodes{"b"});
  std::unique_ptr<Ticket> last;
  ASSERT_EQ(b->give_up(&last), Removal::Kind::remove_everywhere);
  EXPECT_EQ(users(), Nodes{});
  EXPECT_TRUE(last->succeeded());
  EXPECT_EQ(write(*a).kind, Kind::write) << "after a removal a pull really pulls";
}

TEST_F(UsesCounted, P7_WhileItIsBeingRemovedNobodyBeginsToUseIt) {
  const auto a = node("a"), b = node("b");
  a->finish(write(*a));
  std::unique_ptr<Ticket> removal;
  ASSERT_EQ(a->give_up(&removal), Removal::Kind::remove_everywhere);
  EXPECT_EQ(b->ask(true).kind, Kind::wait);
  EXPECT_EQ(write(*b).kind, Kind::wait);
  EXPECT_EQ(users(), Nodes{});
  EXPECT_TRUE(removal->succeeded());
  EXPECT_EQ(b->ask_until_told().kind, Kind::write);
}

TEST_F(UsesCounted, P7_WhoBeginsToUseItKeepsItFromBeingRemoved) {
  const auto a = node("a"), b = node("b");
  a->finish(write(*a));
  Lives::Answer adopt = b->ask_until_told(true);
  EXPECT_EQ(users(), (Nodes{"a", "b"})) << "before the commit";
  EXPECT_EQ(a->give_up(), Removal::Kind::settled);
  b->finish(std::move(adopt));
  EXPECT_EQ(users(), Nodes{"b"});
  EXPECT_EQ(a->removed() + b->removed(), 0u);
}

TEST_F(UsesCounted, P7_WhoComesBetweenTheLookAndTheLockOfARemovalKeepsTheBlob) {
  const auto storage = std::make_shared<InterruptedStorage>(open_storage());
  const auto a = node("a", storage), b = node("b");
  a->finish(write(*a));
  storage->behind_get = [&] { b->finish(b->ask_until_told(true)); };
  EXPECT_EQ(a->give_up(), Removal::Kind::settled);
  EXPECT_EQ(users(), Nodes{"b"});
  cluster_.wait_until([&] { return a->left() == 0; });
  EXPECT_EQ(a->removed(), 0u);
}

TEST_F(UsesCounted, P7_ARemovalCannotComeBetweenASkipAndItsReference) {
  const auto storage = std::make_shared<InterruptedStorage>(open_storage());
  const auto a = node("a"), b = node("b", storage);
  a->finish(write(*a));
  bool removed = true;
  storage->before_change = [&] { removed = a->give_up() == Removal::Kind::remove_everywhere; };
  b->finish(b->ask_until_told(true));
  EXPECT_FALSE(removed);
  EXPECT_EQ(users(), Nodes{"b"});
  cluster_.wait_until([&] { return a->left() == 0; });
  EXPECT_EQ(a->removed(), 0u);
}

TEST_F(UsesCounted, P7_AReferenceThatCameAfterItsHoldHadRunOutDoesNotCount) {
  const auto storage = std::make_shared<InterruptedStorage>(open_storage());
  const auto a = node("a"), b = node("b", storage);
  a->finish(write(*a));
  storage->before_change = [&] { cluster_.advance(20s); };  // a shared disk that stood still
  EXPECT_EQ(b->ask(true).kind, Kind::wait);
  cluster_.wait_until([&] { return users() == Nodes{"a"}; });
  b->finish(b->ask_until_told(true));
  EXPECT_EQ(users(), (Nodes{"a", "b"}));
}

// Each of them comes and goes, with a thread of its own, and finds the file there while it uses it.
TEST_F(UsesCounted, P7_NodesThatComeAndGoNeverLoseWhatTheyUse) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (const char* name : {"a", "b", "c"}) nodes.push_back(node(name));
  const auto come_and_go = [&](Node& node) {
    for (int round = 0; round < 20; ++round) {
      for (;;) {
        Lives::Answer answer = node.ask_until_told(cluster_.has_blob());
        if (answer.kind == Kind::adopt && !cluster_.has_blob()) continue;  // removed since it was seen
        if (node.use(answer.ask)) break;
      }
      EXPECT_TRUE(node.blobs().find(kBlob));
      ASSERT_TRUE(node.lives().leave(kBlob));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (const auto& each : nodes) threads.emplace_back([&, at = each.get()] { come_and_go(*at); });
  }
  cluster_.wait_until([&] { return nodes[0]->left() + nodes[1]->left() + nodes[2]->left() == 0; });
  EXPECT_EQ(users(), Nodes{});
  EXPECT_FALSE(cluster_.has_blob());
}

TEST_F(UsesCounted, AWriteOrAnAdoptionThatFailsLeavesNoReference) {
  const auto a = node("a"), b = node("b");
  write(*a).ask.failed("no space");
  cluster_.wait_until([&] { return users().empty(); });
  b->finish(b->ask_until_told());
  a->ask_until_told(true).ask = {};
  cluster_.wait_until([&] { return users() == Nodes{"b"}; });
  EXPECT_EQ(b->removed(), 0u);
}

TEST_F(UsesCounted, WhatACrashLeftIsPutRightAtTheStart) {
  const auto idle = node("idle");
  ASSERT_TRUE(manager_.add_ref(blob_name(), "a")) << "counted, and dead before its database knew";
  put_file(blob_path(cluster_.root(), kBlob), "a blob");
  {
    const auto a = node("a");
    cluster_.wait_until([&] { return users().empty() && a->removed() == 1; });
  }
  {
    const auto b = node("b");
    b->finish(b->ask_until_told());
  }
  ASSERT_TRUE(manager_.release_node_refs("b")) << "its database knows, and the reference is gone";
  const auto b = node("b");
  cluster_.wait_until([&] { return users() == Nodes{"b"}; });
}

TEST_F(UsesCounted, ARestartKeepsTheReferencesAndNeedsNoServerForIt) {
  {
    const auto a = node("a");
    a->finish(write(*a));
  }
  cluster_.set_reachable(false);
  const auto again = node("a");
  again->work();
  EXPECT_TRUE(again->uses());
  EXPECT_EQ(users(), Nodes{"a"});
}

TEST_F(UsesCounted, AUseEndsAlsoWhileTheServerIsAwayAndTheFilesGoLater) {
  const auto a = node("a");
  a->finish(write(*a));
  cluster_.set_reachable(false);
  EXPECT_EQ(a->give_up(), Removal::Kind::not_asked);
  EXPECT_EQ(users(), Nodes{});
  EXPECT_EQ(a->removed(), 0u);
  cluster_.set_reachable(true);
  cluster_.wait_until([&] { return a->removed() == 1; });
}

TEST_F(UsesCounted, ReferencesOfADeadNodeCanBeReleasedAndThenTheLastOneRemoves) {
  const auto a = node("a");
  a->finish(write(*a));
  ASSERT_TRUE(manager_.add_ref(blob_name(), "dead"));
  ASSERT_TRUE(manager_.release_node_refs("dead"));
  EXPECT_EQ(a->give_up(), Removal::Kind::remove_everywhere);
}

TEST_F(UsesCounted, WithoutAPlaceForReferencesNothingIsWrittenAndNothingIsRemoved) {
  const auto a = node("a"), b = node("b");
  a->finish(write(*a));
  std::filesystem::remove_all(directory_ / "refs");
  EXPECT_EQ(a->give_up(), Removal::Kind::not_asked) << "who uses it cannot be known";
  const Lives::Answer refused = b->ask_until_told(true);
  EXPECT_EQ(refused.kind, Kind::error);
  EXPECT_FALSE(b->lane().holder) << "the next may try";
  EXPECT_EQ(a->removed(), 0u);
}

// What the server knows says nothing about uses that it does not count.
TEST_F(UsesCounted, ReferencesThatAreLostLetNobodyTakeAnothersSecondName) {
  const auto a = node("a"), b = node("b");
  a->finish(write(*a));
  b->finish(b->ask_until_told());
  cluster_.wait_until([&] { return a->left() + b->left() == 0; });
  EXPECT_FALSE(std::filesystem::exists(cluster_.root() + "/uses/a/confirmed-by"));
  put_file(cluster_.root() + "/uses/a/confirmed-by", "fake");  // as earlier versions did
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory_ / "refs"))
    if (file.is_regular_file()) std::filesystem::remove(file.path());
  ASSERT_TRUE(*b->lives().leave(kBlob));
  for (int i = 0; i < 100; ++i) {
    b->work();
    std::this_thread::sleep_for(1ms);  // until it tries once more
  }
  EXPECT_TRUE(a->blobs().is_guarded(kBlob));
  EXPECT_TRUE(a->blobs().find_published(kBlob));
}

TEST(WrongReferences, AreToldWithWhatToDo) {
  ServerLife life;
  EXPECT_FALSE(LockArbiter::wrong_references(life, ReferencesBy::server));
  life.keeps_references = false;
  EXPECT_FALSE(LockArbiter::wrong_references(life, ReferencesBy::client));
  const auto wrong = LockArbiter::wrong_references(life, ReferencesBy::server);
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->find("Start the plugins of all nodes with --references client"), std::string::npos)
      << *wrong;
}

}  // namespace
}  // namespace turnstile::content
