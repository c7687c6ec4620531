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
    return std::make_unique<Node>(server_, name, std::move(options));
  }
  Nodes users() { return manager_.get_ref_count(blob_name())->nodes; }
  static Decision write(Node& node) { return node->begin_write(kBlob, 6); }

  TestDirectory directory_;
  FakeServer server_{{.server_keeps_references = false}};
  RefCountManager manager_{open_storage()};
};

TEST_F(UsesCounted, TheLastUserRemovesAndTheOthersKeep) {
  const auto a = node("a"), b = node("b"), c = node("c");
  a->finish(write(*a));
  b->finish(b->ask_until_told());
  c->finish(c->ask_until_told(true));
  EXPECT_EQ(users(), (Nodes{"a", "b", "c"}));
  EXPECT_EQ(a->give_up().kind, Removal::Kind::keep);
  EXPECT_EQ(c->give_up().kind, Removal::Kind::keep);
  EXPECT_EQ(users(), Nodes{"b"});
  const Removal last = b->give_up();
  ASSERT_EQ(last.kind, Removal::Kind::remove_everywhere);
  EXPECT_EQ(users(), Nodes{});
  last.ticket->succeeded();
  EXPECT_EQ(write(*a).kind, Kind::write) << "after a removal a pull really pulls";
}

TEST_F(UsesCounted, P7_WhileItIsBeingRemovedNobodyBeginsToUseIt) {
  const auto a = node("a"), b = node("b");
  a->finish(write(*a));
  const Removal removal = a->give_up();
  ASSERT_EQ(removal.kind, Removal::Kind::remove_everywhere);
  EXPECT_EQ((*b)->begin_adoption(kBlob).kind, Kind::wait);
  EXPECT_EQ(write(*b).kind, Kind::wait);
  EXPECT_EQ(users(), Nodes{});
  removal.ticket->succeeded();
  EXPECT_EQ(b->ask_until_told().kind, Kind::write);
}

TEST_F(UsesCounted, P7_WhoBeginsToUseItKeepsItFromBeingRemoved) {
  const auto a = node("a"), b = node("b");
  a->finish(write(*a));
  Decision adopt = b->ask_until_told(true);
  EXPECT_EQ(users(), (Nodes{"a", "b"})) << "before the commit";
  EXPECT_EQ(a->give_up().kind, Removal::Kind::keep);
  b->finish(std::move(adopt));
  EXPECT_EQ(users(), Nodes{"b"});
  EXPECT_EQ(a->removed + b->removed, 0);
}

TEST_F(UsesCounted, P7_WhoComesBetweenTheLookAndTheLockOfARemovalKeepsTheBlob) {
  const auto storage = std::make_shared<InterruptedStorage>(open_storage());
  const auto a = node("a", storage), b = node("b");
  a->finish(write(*a));
  storage->behind_get = [&] { b->finish(b->ask_until_told(true)); };
  EXPECT_EQ(a->give_up().kind, Removal::Kind::keep);
  EXPECT_EQ(users(), Nodes{"b"});
  wait_until([&] { return a->unsettled().count() == 0; });
  EXPECT_EQ(a->removed, 0);
}

TEST_F(UsesCounted, P7_ARemovalCannotComeBetweenASkipAndItsReference) {
  const auto storage = std::make_shared<InterruptedStorage>(open_storage());
  const auto a = node("a"), b = node("b", storage);
  a->finish(write(*a));
  bool removed = true;
  storage->before_change = [&] { removed = a->give_up().kind != Removal::Kind::keep; };
  b->finish(b->ask_until_told(true));
  EXPECT_FALSE(removed);
  EXPECT_EQ(users(), Nodes{"b"});
  wait_until([&] { return a->unsettled().count() == 0; });
  EXPECT_EQ(a->removed, 0);
}

TEST_F(UsesCounted, P7_AReferenceThatCameAfterItsHoldHadRunOutDoesNotCount) {
  const auto storage = std::make_shared<InterruptedStorage>(open_storage());
  const auto a = node("a"), b = node("b", storage);
  a->finish(write(*a));
  storage->before_change = [&] { server_.advance(20s); };  // a shared disk that stood still
  EXPECT_EQ((*b)->begin_adoption(kBlob).kind, Kind::wait);
  wait_until([&] { return users() == Nodes{"a"}; });
  b->finish(b->ask_until_told(true));
  EXPECT_EQ(users(), (Nodes{"a", "b"}));
}

// Each of them comes and goes; `present` is the file, and whoever uses it must find it there.
TEST_F(UsesCounted, P7_NodesThatComeAndGoNeverLoseWhatTheyUse) {
  std::atomic<bool> present{false};
  std::atomic<int> using_it{0};
  const auto remove = [&] {
    EXPECT_EQ(using_it, 0);
    present = false;
  };
  std::vector<std::unique_ptr<Node>> nodes;
  for (const char* name : {"a", "b", "c"}) {
    nodes.push_back(node(name));
    nodes.back()->on_remove = remove;
  }
  const auto come_and_go = [&](Node& node) {
    for (int round = 0; round < 20; ++round) {
      for (;;) {
        Decision decision = node.ask_until_told(present);
        if (decision.kind == Kind::write) present = true;
        if (!present) continue;  // removed since it was seen
        ++using_it;
        node.finish(std::move(decision));
        break;
      }
      EXPECT_TRUE(present);
      --using_it;
      const Removal removal = node.give_up();
      if (!removal.ticket) continue;
      remove();
      removal.ticket->succeeded();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (const auto& each : nodes) threads.emplace_back([&, at = each.get()] { come_and_go(*at); });
  }
  for (const auto& each : nodes) wait_until([&] { return each->unsettled().count() == 0; });
  EXPECT_EQ(users(), Nodes{});
  EXPECT_FALSE(present);
}

TEST_F(UsesCounted, AWriteOrAnAdoptionThatFailsLeavesNoReference) {
  const auto a = node("a"), b = node("b");
  write(*a).ticket->failed("no space");
  wait_until([&] { return users().empty(); });
  b->finish(b->ask_until_told());
  a->ask_until_told(true).ticket.reset();
  wait_until([&] { return users() == Nodes{"b"}; });
  EXPECT_EQ(b->removed, 0);
}

TEST_F(UsesCounted, WhatACrashLeftIsPutRightAtTheStart) {
  const auto idle = node("idle");
  ASSERT_TRUE(manager_.add_ref(blob_name(), "a")) << "counted, and dead before its database knew";
  const auto a = node("a");
  (*a)->resume({});
  wait_until([&] { return users().empty() && a->removed == 1; });
  const auto b = node("b");  // its database knows, and the reference is gone
  b->set_uses(true);
  (*b)->resume({kBlob});
  wait_until([&] { return users() == Nodes{"b"}; });
}

TEST_F(UsesCounted, ARestartKeepsTheReferencesAndNeedsNoServerForIt) {
  {
    const auto a = node("a");
    a->finish(write(*a));
  }
  server_.set_reachable(false);
  const auto again = node("a");
  again->set_uses(true);
  (*again)->resume({kBlob});
  EXPECT_EQ(again->unsettled().count(), 0u);
  EXPECT_EQ(users(), Nodes{"a"});
}

TEST_F(UsesCounted, AUseEndsAlsoWhileTheServerIsAwayAndTheFilesGoLater) {
  const auto a = node("a");
  a->finish(write(*a));
  server_.set_reachable(false);
  EXPECT_EQ(a->give_up().kind, Removal::Kind::keep);
  EXPECT_EQ(users(), Nodes{});
  EXPECT_EQ(a->removed, 0);
  server_.set_reachable(true);
  wait_until([&] { return a->removed == 1; });
}

TEST_F(UsesCounted, ReferencesOfADeadNodeCanBeReleasedAndThenTheLastOneRemoves) {
  const auto a = node("a");
  a->finish(write(*a));
  ASSERT_TRUE(manager_.add_ref(blob_name(), "dead"));
  ASSERT_TRUE(manager_.release_node_refs("dead"));
  EXPECT_EQ(a->give_up().kind, Removal::Kind::remove_everywhere);
}

TEST_F(UsesCounted, WithoutAPlaceForReferencesNothingIsWrittenAndNothingIsRemoved) {
  const auto a = node("a"), b = node("b");
  a->finish(write(*a));
  std::filesystem::remove_all(directory_ / "refs");
  EXPECT_EQ(a->give_up().kind, Removal::Kind::keep) << "who uses it cannot be known";
  const Decision refused = b->ask_until_told(true);
  EXPECT_EQ(refused.kind, Kind::error);
  EXPECT_FALSE(b->lane().holder) << "the next may try";
  EXPECT_EQ(a->removed, 0);
}

TEST(WrongReferences, AreToldWithWhatToDo) {
  const std::string version = R"({"version":"1","settings":{"listen":"x","references":"client"}})";
  EXPECT_FALSE(LockArbiter::wrong_references(version, ReferencesBy::client));
  const auto wrong = LockArbiter::wrong_references(version, ReferencesBy::server);
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->find("Start the plugins of all nodes with --references client"), std::string::npos)
      << *wrong;
  EXPECT_FALSE(LockArbiter::wrong_references(R"({"version":"1","fake":true})", ReferencesBy::server));
}

}  // namespace
}  // namespace turnstile::content
