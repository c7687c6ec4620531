// Two nodes and the server's real rules, without a network: who writes, who adopts, who removes.
#include "content/lock_arbiter.h"

#include "content/test_node.h"
#include "content/write_session.h"

namespace turnstile::content {
namespace {

using Names = std::vector<std::string>;

TEST(LockArbiter, TheFirstWritesAndTheOthersWaitAndThenAdopt) {
  Cluster cluster;
  Node a(cluster, "a"), b(cluster, "b"), c(cluster, "c");
  Lives::Answer write = a.ask();
  ASSERT_EQ(write.kind, Kind::write);
  const Lives::Answer wait = b.ask();
  EXPECT_EQ(wait.kind, Kind::wait);
  EXPECT_EQ(wait.why, "a is working on it");
  EXPECT_EQ(b.ask().kind, Kind::wait);
  EXPECT_EQ(a.lane().queue_length, 1u) << "asking again keeps the place and takes no second one";
  a.finish(std::move(write));
  Lives::Answer adopt = b.ask_until_told();
  EXPECT_EQ(adopt.kind, Kind::adopt);
  b.finish(std::move(adopt));
  Lives::Answer late = c.ask(true);
  EXPECT_EQ(late.kind, Kind::adopt);
  c.finish(std::move(late));
  EXPECT_EQ(a.users(), (Names{"a", "b", "c"}));
}

TEST(LockArbiter, AFailureHandsOverWithItsError) {
  Cluster cluster;
  Node a(cluster, "a"), b(cluster, "b");
  Lives::Answer first = a.ask();
  ASSERT_EQ(b.ask().kind, Kind::wait);
  first.ask.failed("the registry lies");
  EXPECT_FALSE(first.ask.still_valid());
  Lives::Answer second = b.ask_until_told();
  ASSERT_EQ(second.kind, Kind::write);
  EXPECT_EQ(b.metrics->value(Count::takeovers), 1u);
  EXPECT_EQ(b.metrics->value(Count::queued), 1u);
  EXPECT_EQ(a.users(), Names{});
  // And back again: the error of the second is told to the third.
  ASSERT_EQ(a.ask().kind, Kind::wait);
  second.ask = {};
  Lives::Answer third = a.ask_until_told();
  EXPECT_EQ(third.kind, Kind::write);
  a.finish(std::move(third));
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, AStreamOfTheSameNodeThatHasJustBeenClosedIsWaitedFor) {
  Cluster cluster;
  Node a(cluster, "a");
  Lives::Answer first = a.ask();
  EXPECT_EQ(a.ask().kind, Kind::wait);
  EXPECT_EQ(a.lane().queue_length, 0u) << "a node does not queue behind itself";
  first.ask = {};
  EXPECT_EQ(a.ask().kind, Kind::write);
}

TEST(LockArbiter, ABlobThatNobodyUsesIsAdoptedUnderAHold) {
  Cluster cluster;
  Node a(cluster, "a"), b(cluster, "b");
  Lives::Answer adopt = a.ask(true);
  ASSERT_EQ(adopt.kind, Kind::adopt);
  EXPECT_EQ(b.ask(true).kind, Kind::wait) << "it could be being removed";
  EXPECT_EQ(a.lane().queue_length, 0u);
  a.finish(std::move(adopt));
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, AnAdoptionThatIsNotCommittedLeavesNoReference) {
  Cluster cluster;
  Node a(cluster, "a"), b(cluster, "b");
  a.finish(a.ask());
  b.ask().ask = {};
  EXPECT_EQ(a.users(), (Names{"a", "b"})) << "the skip itself counts";
  cluster.wait_until([&] { return b.left() == 0; });
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, WhoIsToldToWaitLeavesNoLineBehind) {
  Cluster cluster;
  Node a(cluster, "a"), b(cluster, "b");
  const Lives::Answer adopt = a.ask(true);
  ASSERT_EQ(b.ask(true).kind, Kind::wait);
  EXPECT_EQ(b.left(), 0u) << "the server has said that it counts nobody";
}

TEST(LockArbiter, OnlyTheLastUserRemoves) {
  Cluster cluster;
  Node a(cluster, "a"), b(cluster, "b");
  a.finish(a.ask());
  b.finish(b.ask());
  EXPECT_EQ(a.give_up(), Removal::Kind::settled);
  EXPECT_EQ(b.users(), Names{"b"});
  std::unique_ptr<Ticket> last;
  ASSERT_EQ(b.give_up(&last), Removal::Kind::remove_everywhere);
  EXPECT_EQ(a.ask(true).kind, Kind::wait) << "while the files are being removed";
  EXPECT_TRUE(last->succeeded());
  EXPECT_EQ(a.ask_until_told().kind, Kind::write) << "after a removal a pull really pulls";
}

TEST(LockArbiter, AFileThatCameAfterItsRemovalIsNotTakenForRemoved) {
  Cluster cluster;
  Node a(cluster, "a");
  a.finish(a.ask());
  ASSERT_TRUE(*a.lives().leave(kBlob));
  cluster.wait_until([&] { return a.left() == 0; });
  EXPECT_FALSE(cluster.has_blob());
  // Of a pull that ended early; the server still says that the removal is done.
  put_file(blob_path(cluster.root(), kBlob), "a blob");
  EXPECT_EQ(a->end_use(kBlob, true, false).kind, Removal::Kind::later);
  EXPECT_EQ(a->end_use(kBlob, false, false).kind, Removal::Kind::settled);
}

TEST(LockArbiter, WhatOthersAreAtIsRemovedWhenTheyAreDone) {
  Cluster cluster;
  Node a(cluster, "a");
  a.finish(a.ask());
  LockClient other = cluster.client("other");
  Expected<LockResult> scan = other.try_lock({.operation = "scan", .resource = blob_name()});
  ASSERT_TRUE(scan && scan->acquired());
  EXPECT_EQ(a.give_up(), Removal::Kind::later);
  EXPECT_EQ(a.users(), Names{}) << "that this node does not use it any more counts at once";
  EXPECT_TRUE(cluster.has_blob());
  ASSERT_TRUE(scan->hold.release(WorkResult::succeeded()));
  cluster.wait_until([&] { return a.removed() == 1; });
  EXPECT_FALSE(cluster.has_blob());
}

TEST(LockArbiter, WithoutAServerItWaits) {
  Cluster cluster;
  Node a(cluster, "a");
  cluster.set_reachable(false);
  EXPECT_EQ(a.ask().kind, Kind::wait);
  EXPECT_EQ(a.ask(true).kind, Kind::wait);
  cluster.set_reachable(true);
  EXPECT_EQ(a.ask_until_told().kind, Kind::write);
}

TEST(LockArbiter, ItKnowsWithoutBeingAskedWhetherTheServerIsThere) {
  Cluster cluster;
  cluster.set_reachable(false);
  Node a(cluster, "a");
  cluster.wait_until([&] { return a.metrics->why_not_ready().has_value(); });
  cluster.set_reachable(true);
  cluster.wait_until([&] { return !a.metrics->why_not_ready(); });
}

TEST(LockArbiter, WithoutAServerItPullsIfToldToAndTheServerHearsOfItLater) {
  Cluster cluster;
  Node a(cluster, "a", {.without_server = WithoutServer::pull});
  cluster.set_reachable(false);
  Lives::Answer write = a.ask();
  ASSERT_EQ(write.kind, Kind::write);
  a.finish(std::move(write));
  EXPECT_TRUE(a.blobs().is_guarded(kBlob));
  EXPECT_EQ(a.lives().unconfirmed(), 1u);
  EXPECT_EQ(a.metrics->value(Count::pulls_without_server), 1u);
  cluster.set_reachable(true);
  cluster.wait_until([&] { return a.left() == 0; });
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, ARemovalThatTheServerDidNotHearOfIsMadeUpFor) {
  Cluster cluster;
  Node a(cluster, "a");
  a.finish(a.ask());
  cluster.set_reachable(false);
  EXPECT_EQ(a.give_up(), Removal::Kind::unknown);
  cluster.set_reachable(true);
  cluster.wait_until([&] { return a.removed() == 1 && a.left() == 0; });
  EXPECT_EQ(a.users(), Names{});
}

TEST(LockArbiter, WhatTheNodeUsesIsToldAtTheStart) {
  Cluster cluster;
  {
    Node a(cluster, "a");
    a.finish(a.ask());
  }
  ASSERT_TRUE(cluster.client("admin").release_node("a"));
  Node a(cluster, "a");
  EXPECT_EQ(a.users(), Names{});
  cluster.wait_until([&] { return a.left() == 0; });
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, ATurnThatNobodyTakesIsPassedOn) {
  Cluster cluster;
  Node a(cluster, "a"), c(cluster, "c");
  Node b(cluster, "b", {.places = {.for_taking = 1ms, .for_asking = 1h}});
  Lives::Answer write = a.ask();
  ASSERT_EQ(b.ask().kind, Kind::wait);
  ASSERT_EQ(c.ask().kind, Kind::wait);
  write.ask.failed("no space");
  Lives::Answer next;
  cluster.wait_until([&] {
    next = c.ask();
    return next.kind != Kind::wait;
  });
  EXPECT_EQ(next.kind, Kind::write);
}

TEST(LockArbiter, APlaceThatNobodyAsksAboutIsGivenUp) {
  Cluster cluster;
  Node a(cluster, "a");
  Node b(cluster, "b", {.places = {.for_taking = 1h, .for_asking = 1ms}});
  const Lives::Answer write = a.ask();
  ASSERT_EQ(b.ask().kind, Kind::wait);
  cluster.wait_until([&] { return a.lane().queue_length == 0; });
}

TEST(LockArbiter, WhatStaysOutOfSightIsPulledAgainByOneNodeAtATime) {
  Cluster cluster;
  const LockArbiter::Options short_sighted{.visible_within = 0ms};
  Node a(cluster, "a"), b(cluster, "b", short_sighted), c(cluster, "c", short_sighted);
  a.finish(a.ask());
  EXPECT_EQ(b.ask(true).kind, Kind::adopt) << "in sight";
  Lives::Answer again = b.ask_until_told();
  while (again.kind == Kind::adopt) {
    again = {};
    again = b.ask_until_told();
  }
  ASSERT_EQ(again.kind, Kind::write);
  EXPECT_NE(c.ask().kind, Kind::write);
  EXPECT_NE(c.ask().kind, Kind::write);
  b.finish(std::move(again));
  EXPECT_EQ(a.users()[1], "b");
}

TEST(LockArbiter, APullAgainThatFailsLeavesNoReference) {
  Cluster cluster;
  Node a(cluster, "a");
  Node b(cluster, "b", {.visible_within = 0ms});
  a.finish(a.ask());
  ASSERT_EQ(b.ask_until_told().kind, Kind::adopt) << "which is not in sight, and given up";
  Lives::Answer again = b.ask_until_told();
  ASSERT_EQ(again.kind, Kind::write);
  EXPECT_EQ(a.users(), (Names{"a", "b"})) << "the skip itself counts";
  again.ask.failed("no space");
  cluster.wait_until([&] { return b.left() == 0; });
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, TwoPluginsOfOneNameAreTold) {
  Cluster cluster;
  Node a(cluster, "a", {.identity = "one", .machine = "the machine one"});
  EXPECT_FALSE(a->claim_name());
  LockArbiter again(std::make_unique<ClientLockServer>(cluster.client("a"), cluster.client("a")),
                    {.node = "a", .identity = "one", .machine = "the machine one"});
  EXPECT_FALSE(again.claim_name()) << "a restart";
  LockArbiter other(std::make_unique<ClientLockServer>(cluster.client("a"), cluster.client("a")),
                    {.node = "a", .identity = "two", .machine = "the machine two"});
  const std::optional<std::string> wrong = other.claim_name();
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->find("belongs to the machine one"), std::string::npos) << *wrong;
  cluster.advance(1min);
  EXPECT_FALSE(other.claim_name()) << "the other one has gone";
}

TEST(LockArbiter, P9_WhatTheNodeHasNeedsNoServer) {
  Cluster cluster;
  TestDirectory directory;
  const auto store = open_node(directory / "root", directory / "state", {},
                               std::make_unique<LockArbiter>(std::make_unique<ClientLockServer>(
                                                                 cluster.client("a"), cluster.client("a")),
                                                             LockArbiter::Options{}));
  const std::string ref = "default/1/layer-" + blob_name();
  const auto pull = [&](std::string_view bytes) {
    WriteSession session(*store);
    WriteMessage message;
    message.ref = ref;
    message.total = 6;
    EXPECT_TRUE(session.handle(message));
    message.action = WriteAction::commit;
    message.data = bytes;
    const Outcome<WriteAnswer> done = session.handle(message);
    EXPECT_TRUE(done) << done.error().message;
  };
  pull("a blob");
  LockClient watcher = cluster.client("watcher");
  cluster.set_reachable(false);
  pull({});
  EXPECT_TRUE(store->info(kBlob));
  EXPECT_TRUE(store->open(kBlob));
  cluster.set_reachable(true);
  EXPECT_EQ(watcher.references(blob_name())->nodes, Names{"a"});
}

}  // namespace
}  // namespace turnstile::content
