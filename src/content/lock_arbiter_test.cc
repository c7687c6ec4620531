// Two nodes and the server's real rules, without a network: who writes, who adopts, who removes.
#include "content/lock_arbiter.h"

#include "content/test_node.h"
#include "content/write_session.h"

namespace turnstile::content {
namespace {

using Names = std::vector<std::string>;

TEST(LockArbiter, TheFirstWritesAndTheOthersWaitAndThenAdopt) {
  FakeServer server;
  Node a(server, "a"), b(server, "b"), c(server, "c");
  Decision write = a->begin_write(kBlob, 6);
  ASSERT_EQ(write.kind, Kind::write);
  const Decision wait = b->begin_write(kBlob, 6);
  EXPECT_EQ(wait.kind, Kind::wait);
  EXPECT_EQ(wait.why, "a is at it");
  EXPECT_EQ(b->begin_write(kBlob, 6).kind, Kind::wait);
  EXPECT_EQ(a.lane().queue_length, 1u) << "asking again keeps the place and takes no second one";
  a.finish(std::move(write));
  Decision adopt = b.ask_until_told();
  EXPECT_EQ(adopt.kind, Kind::adopt);
  b.finish(std::move(adopt));
  Decision late = c->begin_adoption(kBlob);
  EXPECT_EQ(late.kind, Kind::adopt);
  c.finish(std::move(late));
  EXPECT_EQ(a.users(), (Names{"a", "b", "c"}));
}

TEST(LockArbiter, AFailureHandsOverWithItsError) {
  FakeServer server;
  Node a(server, "a"), b(server, "b");
  Decision first = a->begin_write(kBlob, 6);
  ASSERT_EQ(b->begin_write(kBlob, 6).kind, Kind::wait);
  first.ticket->failed("the registry lies");
  EXPECT_FALSE(first.ticket->still_valid());
  Decision second = b.ask_until_told();
  ASSERT_EQ(second.kind, Kind::write);
  EXPECT_EQ(b.metrics->value(Count::takeovers), 1u);
  EXPECT_EQ(b.metrics->value(Count::queued), 1u);
  EXPECT_EQ(a.users(), Names{});
  // And back again: the error of the second is told to the third.
  ASSERT_EQ(a->begin_write(kBlob, 6).kind, Kind::wait);
  second.ticket.reset();
  Decision third = a.ask_until_told();
  EXPECT_EQ(third.kind, Kind::write);
  a.finish(std::move(third));
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, AStreamOfTheSameNodeThatHasJustBeenClosedIsWaitedFor) {
  FakeServer server;
  Node a(server, "a");
  Decision first = a->begin_write(kBlob, 6);
  EXPECT_EQ(a->begin_write(kBlob, 6).kind, Kind::wait);
  EXPECT_EQ(a.lane().queue_length, 0u) << "a node does not queue behind itself";
  first.ticket.reset();
  EXPECT_EQ(a->begin_write(kBlob, 6).kind, Kind::write);
}

TEST(LockArbiter, ABlobThatNobodyUsesIsAdoptedUnderAHold) {
  FakeServer server;
  Node a(server, "a"), b(server, "b");
  Decision adopt = a->begin_adoption(kBlob);
  ASSERT_EQ(adopt.kind, Kind::adopt);
  EXPECT_EQ(b->begin_adoption(kBlob).kind, Kind::wait) << "it could be being removed";
  EXPECT_EQ(a.lane().queue_length, 0u);
  a.finish(std::move(adopt));
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, AnAdoptionThatIsNotCommittedLeavesNoReference) {
  FakeServer server;
  Node a(server, "a"), b(server, "b");
  a.finish(a->begin_write(kBlob, 6));
  b->begin_write(kBlob, 6).ticket.reset();
  EXPECT_EQ(a.users(), (Names{"a", "b"})) << "the skip itself counts";
  wait_until([&] { return a.users() == Names{"a"}; });
  wait_until([&] { return b.unsettled().count() == 0; });
}

TEST(LockArbiter, OnlyTheLastUserRemoves) {
  FakeServer server;
  Node a(server, "a"), b(server, "b");
  a.finish(a->begin_write(kBlob, 6));
  b.finish(b->begin_write(kBlob, 6));
  EXPECT_EQ(a.give_up().kind, Removal::Kind::keep);
  EXPECT_EQ(b.users(), Names{"b"});
  const Removal last = b.give_up();
  ASSERT_EQ(last.kind, Removal::Kind::remove_everywhere);
  EXPECT_EQ(a->begin_adoption(kBlob).kind, Kind::wait) << "while the files are being removed";
  last.ticket->succeeded();
  Decision anew = a->begin_write(kBlob, 6);
  EXPECT_EQ(anew.kind, Kind::write) << "after a removal a pull really pulls";
}

TEST(LockArbiter, AFileThatCameAfterItsRemovalIsNotTakenForRemoved) {
  FakeServer server;
  Node a(server, "a");
  a.finish(a->begin_write(kBlob, 6));
  a.give_up().ticket->succeeded();
  a.there = true;  // of a pull that ended early; the server still says that the removal is done
  EXPECT_EQ(a.give_up().kind, Removal::Kind::keep);
  EXPECT_EQ(a.unsettled().count(), 1u);
  a.there = false;
  wait_until([&] { return a.unsettled().count() == 0; });
}

TEST(LockArbiter, WhatOthersAreAtIsRemovedWhenTheyAreDone) {
  FakeServer server;
  Node a(server, "a");
  a.finish(a->begin_write(kBlob, 6));
  LockClient other = server.client("other");
  Expected<LockResult> scan = other.try_lock({.operation = "scan", .resource = blob_name()});
  ASSERT_TRUE(scan && scan->acquired);
  EXPECT_EQ(a.give_up().kind, Removal::Kind::keep);
  EXPECT_EQ(a.users(), Names{}) << "that this node does not use it any more counts at once";
  EXPECT_EQ(a.removed, 0);
  ASSERT_TRUE(scan->hold.release(WorkResult::succeeded()));
  wait_until([&] { return a.removed == 1; });
  wait_until([&] { return a.metrics->value(Count::removed_blobs) == 1; });
}

TEST(LockArbiter, WithoutAServerItWaits) {
  FakeServer server;
  Node a(server, "a");
  server.set_reachable(false);
  EXPECT_EQ(a->begin_write(kBlob, 6).kind, Kind::wait);
  EXPECT_EQ(a->begin_adoption(kBlob).kind, Kind::wait);
  server.set_reachable(true);
  Decision write = a.ask_until_told();
  EXPECT_EQ(write.kind, Kind::write);
}

TEST(LockArbiter, ItKnowsWithoutBeingAskedWhetherTheServerIsThere) {
  FakeServer server;
  server.set_reachable(false);
  Node a(server, "a");
  wait_until([&] { return a.metrics->why_not_ready().has_value(); });
  server.set_reachable(true);
  wait_until([&] { return !a.metrics->why_not_ready(); });
}

TEST(LockArbiter, WithoutAServerItPullsIfToldTo) {
  FakeServer server;
  Node a(server, "a", {.without_server = WithoutServer::pull, .uses = {}, .is_there = {}, .remove = {}});
  server.set_reachable(false);
  Decision write = a->begin_write(kBlob, 6);
  ASSERT_EQ(write.kind, Kind::write);
  a.finish(std::move(write));
  EXPECT_GT(a.unsettled().count(), 0u);
  EXPECT_EQ(a.metrics->value(Count::pulls_without_server), 1u);
  server.set_reachable(true);
  wait_until([&] { return a.unsettled().count() == 0; });
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, ASuccessReachesAServerThatWasAway) {
  FakeServer server;
  Node a(server, "a"), b(server, "b");
  Decision write = a->begin_write(kBlob, 6);
  server.set_reachable(false);
  EXPECT_TRUE(write.ticket->still_valid()) << "the lease has not run out";
  a.set_uses(true);
  write.ticket->succeeded();
  server.set_reachable(true);
  EXPECT_EQ(b.ask_until_told().kind, Kind::adopt);
  wait_until([&] { return a.unsettled().count() == 0; });
  EXPECT_EQ(a.users().front(), "a");
}

TEST(LockArbiter, ARemovalThatTheServerDidNotHearOfIsMadeUpFor) {
  FakeServer server;
  Node a(server, "a");
  a.finish(a->begin_write(kBlob, 6));
  server.set_reachable(false);
  EXPECT_EQ(a.give_up().kind, Removal::Kind::keep);
  server.set_reachable(true);
  wait_until([&] { return a.removed == 1; });
  wait_until([&] { return a.unsettled().count() == 0; });
  EXPECT_EQ(a.users(), Names{});
}

TEST(LockArbiter, ABlobThatIsUsedAgainIsNotGivenUpLater) {
  FakeServer server;
  Node a(server, "a");
  a.finish(a->begin_write(kBlob, 6));
  server.set_reachable(false);
  a.give_up();
  a.set_uses(true);
  server.set_reachable(true);
  wait_until([&] { return a.unsettled().count() == 0; });
  EXPECT_EQ(a.users(), Names{"a"});
  EXPECT_EQ(a.removed, 0);
}

TEST(LockArbiter, WhatTheNodeUsesIsToldAtTheStart) {
  FakeServer server;
  Node a(server, "a");
  a.set_uses(true);
  a->resume({kBlob});
  wait_until([&] { return a.users() == Names{"a"}; });
}

TEST(LockArbiter, ATurnThatNobodyTakesIsPassedOn) {
  FakeServer server;
  Node a(server, "a");
  Node b(server, "b",
         {.places = {.for_taking = 1ms, .for_asking = 1h}, .uses = {}, .is_there = {}, .remove = {}});
  Node c(server, "c");
  Decision write = a->begin_write(kBlob, 6);
  ASSERT_EQ(b->begin_write(kBlob, 6).kind, Kind::wait);
  ASSERT_EQ(c->begin_write(kBlob, 6).kind, Kind::wait);
  write.ticket->failed("no space");
  const Decision next = c.ask_until_told();
  EXPECT_EQ(next.kind, Kind::write);
}

TEST(LockArbiter, APlaceThatNobodyAsksAboutIsGivenUp) {
  FakeServer server;
  Node a(server, "a");
  Node b(server, "b",
         {.places = {.for_taking = 1h, .for_asking = 1ms}, .uses = {}, .is_there = {}, .remove = {}});
  const Decision write = a->begin_write(kBlob, 6);
  ASSERT_EQ(b->begin_write(kBlob, 6).kind, Kind::wait);
  wait_until([&] { return a.lane().queue_length == 0; });
}

TEST(LockArbiter, WhatStaysOutOfSightIsPulledAgainByOneNodeAtATime) {
  FakeServer server;
  const auto short_sighted = [] {
    return LockArbiter::Options{.visible_within = 0ms, .uses = {}, .is_there = {}, .remove = {}};
  };
  Node a(server, "a"), b(server, "b", short_sighted()), c(server, "c", short_sighted());
  a.finish(a->begin_write(kBlob, 6));
  EXPECT_EQ(b->begin_adoption(kBlob).kind, Kind::adopt) << "in sight";
  Decision again = b.ask_until_told();
  while (again.kind == Kind::adopt) again = b.ask_until_told();
  ASSERT_EQ(again.kind, Kind::write);
  EXPECT_NE(c->begin_write(kBlob, 6).kind, Kind::write);
  EXPECT_NE(c->begin_write(kBlob, 6).kind, Kind::write);
  b.finish(std::move(again));
  wait_until([&] { return b.unsettled().count() == 0; });
  EXPECT_EQ(a.users()[1], "b");
}

TEST(LockArbiter, APullAgainThatFailsLeavesNoReference) {
  FakeServer server;
  Node a(server, "a");
  Node b(server, "b", {.visible_within = 0ms, .uses = {}, .is_there = {}, .remove = {}});
  a.finish(a->begin_write(kBlob, 6));
  ASSERT_EQ(b.ask_until_told().kind, Kind::adopt) << "which is not in sight, and given up";
  wait_until([&] { return b.unsettled().count() == 0; });
  EXPECT_EQ(a.users(), Names{"a"});
  const Decision again = b.ask_until_told();
  ASSERT_EQ(again.kind, Kind::write);
  EXPECT_EQ(a.users(), (Names{"a", "b"})) << "the skip itself counts";
  again.ticket->failed("no space");
  wait_until([&] { return a.users() == Names{"a"}; });
}

TEST(LockArbiter, WithoutTheServersReferencesNothingIsRemoved) {
  FakeServer server({.server_keeps_references = false});
  Node a(server, "a");
  a.finish(a->begin_write(kBlob, 6));
  EXPECT_EQ(a.give_up().kind, Removal::Kind::keep);
  EXPECT_EQ(a.unsettled().count(), 0u);
}

TEST(LockArbiter, P9_WhatTheNodeHasNeedsNoServer) {
  FakeServer server;
  TestDirectory directory;
  Outcome<std::shared_ptr<Unsettled>> unsettled = Unsettled::open(directory.path());
  ASSERT_TRUE(unsettled);
  LockArbiter::Options options;
  options.uses = [](const Digest&) { return true; };
  const auto store = open_node(directory / "root", directory / "state", {},
                               std::make_unique<LockArbiter>(server.client("a"), *unsettled, options));
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
  wait_until([&] { return (*unsettled)->count() == 0; });
  LockClient watcher = server.client("watcher");
  server.set_reachable(false);
  pull({});
  EXPECT_TRUE(store->info(kBlob));
  EXPECT_TRUE(store->open(kBlob));
  server.set_reachable(true);
  EXPECT_EQ(watcher.references(blob_name())->nodes, Names{"a"});
}

}  // namespace
}  // namespace turnstile::content
