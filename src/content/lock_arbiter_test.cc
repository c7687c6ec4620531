// Two nodes and the server's real rules, without a network: who writes, who adopts, who removes.
#include "content/lock_arbiter.h"

#include "content/test_node.h"
#include "content/write_session.h"

namespace turnstile::content {
namespace {

using Names = std::vector<std::string>;

// The cluster's server, behind a network that loses words, in one life after the other.
class FaultyServer final : public LockServer {
 public:
  FaultyServer(Cluster& cluster, const std::string& node)
      : server_(cluster.client(node), cluster.client(node)) {}

  bool loses_cancels = false;  // then a delete that is not wanted any more waits for its turn
  std::string life_id = "1";
  std::optional<bool> keeps_references{};
  std::optional<ClientError> refuses_names{};

  Expected<Grant> try_lock(const LockRequest& request) override {
    if (refuses_names && request.operation == "node-name") return std::unexpected(*refuses_names);
    if (!loses_cancels || request.operation != operations::kDelete) return server_.try_lock(request);
    LockRequest stays = request;
    stays.stay_when_busy = true;
    Expected<Grant> grant = server_.try_lock(stays);
    if (grant && grant->queued) return std::unexpected(ClientError{ErrorCode::busy, "busy", {}, {}});
    return grant;
  }
  Expected<uint32_t> release_reference(const std::string& resource) override {
    return server_.release_reference(resource);
  }
  Expected<uint32_t> references(const std::string& resource) override { return server_.references(resource); }
  Expected<Grant> lock(const LockRequest& request, LockClient::Clock::time_point deadline,
                       const std::stop_token& stop) override {
    return server_.lock(request, deadline, stop);
  }
  void cancel(const LockRequest& request) override { server_.cancel(request); }
  Expected<LaneStatus> status(const std::string& operation, const std::string& resource) override {
    return server_.status(operation, resource);
  }
  std::vector<Expected<void>> add_references(const std::vector<std::string>& resources) override {
    return server_.add_references(resources);
  }
  Expected<ServerLife> life() override { return ServerLife{life_id, 1h, keeps_references}; }

 private:
  ClientLockServer server_;
};

// Node a without Lives, and node c, which downloads the blob.
struct Faulty : Cluster {
  using Cluster::Cluster;
  LockClient c = client("c");
  Expected<LockResult> pull = c.try_lock({.operation = "pull", .resource = blob_name(), .scope = "resource"});
  FaultyServer* server = new FaultyServer(*this, "a");
  LockArbiter a{std::unique_ptr<LockServer>(server),
                {.node = "a", .identity = "one", .machine = "the machine one"}};

  Names users() { return c.references(blob_name())->nodes; }
};

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

TEST(LockArbiter, AFileThatCameAfterARemovalByOthersIsNotTakenForRemoved) {
  Cluster cluster;
  Node a(cluster, "a");
  LockClient other = cluster.client("other");
  Expected<LockResult> removal = other.try_lock({.operation = "delete", .resource = blob_name()});
  ASSERT_TRUE(removal && removal->hold.release(WorkResult::succeeded())) << "which the server keeps";
  put_file(blob_path(cluster.root(), kBlob), "a blob");
  EXPECT_EQ(a->end_use(kBlob, true).kind, Removal::Kind::later);
  EXPECT_EQ(a->end_use(kBlob, false).kind, Removal::Kind::settled);
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

TEST(LockArbiter, ADeleteThatWasLeftInAQueueEndsNoLaterUse) {
  Faulty cluster;
  ASSERT_TRUE(cluster.pull && cluster.pull->acquired());
  cluster.server->loses_cancels = true;
  EXPECT_EQ(cluster.a.end_use(kBlob, false).kind, Removal::Kind::later);
  ASSERT_EQ(cluster.c.status("delete", blob_name())->queue_length, 1u);
  ASSERT_TRUE(cluster.a.confirm_uses({kBlob}).front());
  ASSERT_TRUE(cluster.pull->hold.release(WorkResult::succeeded()));
  EXPECT_EQ(cluster.c.status("delete", blob_name())->queue_length, 0u) << "its turn has come";
  EXPECT_EQ(cluster.users(), (Names{"a", "c"}));
}

TEST(LockArbiter, ASkipOfAnEarlierLifeIsAskedForAgain) {
  Faulty cluster;
  ASSERT_EQ(cluster.a.begin_write(kBlob, 6).kind, Kind::wait);
  ASSERT_TRUE(cluster.pull->hold.release(WorkResult::succeeded()));
  cluster.wait_until([&] { return cluster.users() == Names{"a", "c"}; });
  ASSERT_TRUE(cluster.client("admin").release_node("a"));  // as an old store does that is restored
  cluster.server->life_id = "2";
  ASSERT_EQ(cluster.a.ask_life(), "2") << "it is known that the server has begun anew";
  Decision adopt;
  cluster.wait_until([&] {
    adopt = cluster.a.begin_write(kBlob, 6);
    return adopt.kind != Kind::wait;
  });
  ASSERT_EQ(adopt.kind, Kind::adopt);
  EXPECT_TRUE(adopt.ticket->succeeded());
  EXPECT_EQ(cluster.users(), (Names{"a", "c"})) << "what is said to be confirmed is so";
}

// Both are tried: one that says so, and an older one that does not.
TEST(LockArbiter, AServerThatKeepsNoReferencesConfirmsNothing) {
  for (const bool tells : {true, false}) {
    Faulty cluster({.server_keeps_references = false});
    if (tells) cluster.server->keeps_references = false;
    EXPECT_EQ(cluster.a.ask_life(), tells ? "" : "1");
    EXPECT_FALSE(cluster.a.confirm_uses({kBlob}).front());
    EXPECT_EQ(cluster.a.end_use(kBlob, true).kind, Removal::Kind::not_asked) << "that it counts nobody";
    EXPECT_EQ(cluster.a.life(), tells ? "" : "1");
  }
}

TEST(LockArbiter, AServerThatCameBackWithoutReferencesIsNoticedBeforeTheNextUse) {
  Faulty cluster;
  cluster.server->keeps_references = true;
  ASSERT_EQ(cluster.a.ask_life(), "1");
  cluster.server->life_id = "2";
  cluster.server->keeps_references = false;
  EXPECT_EQ(cluster.a.ask_life(), "") << "no other node may rely on this life";
  EXPECT_EQ(cluster.a.begin_write(kBlob, 6).kind, Kind::error);
  EXPECT_FALSE(cluster.a.confirm_uses({kBlob}).front());
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
  EXPECT_TRUE(write.is_alone);
  a.finish(std::move(write));
  EXPECT_TRUE(a.blobs().is_guarded(kBlob));
  EXPECT_EQ(a.lives().unconfirmed(), 1u);
  EXPECT_EQ(a.metrics->value(Count::pulls_without_server), 1u);
  cluster.set_reachable(true);
  cluster.wait_until([&] { return a.left() == 0; });
  EXPECT_EQ(a.users(), Names{"a"});
}

TEST(LockArbiter, WhatComesBackWithoutTheServerIsRemovedAgainAtOnce) {
  Cluster cluster;
  Node a(cluster, "a", {.without_server = WithoutServer::pull});
  for (uint64_t times = 1; times <= 2; ++times) {
    cluster.set_reachable(times == 1);
    a.finish(a.ask_until_told());
    cluster.set_reachable(true);
    cluster.wait_until([&] { return a.left() == 0; });
    ASSERT_TRUE(a.lives().leave(kBlob));
    cluster.wait_until([&] { return a.left() == 0; });
    EXPECT_EQ(a.removed(), times);
    EXPECT_FALSE(cluster.has_blob());
  }
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

TEST(LockArbiter, WhoseNameIsAnothersUsesAndRemovesNothingMore) {
  Cluster cluster;
  auto other = std::make_unique<LockArbiter>(
      std::make_unique<ClientLockServer>(cluster.client("a"), cluster.client("a")),
      LockArbiter::Options{.node = "a", .identity = "one", .machine = "the machine one"});
  ASSERT_FALSE(other->claim_name());
  LockArbiter::Clock::duration later{};
  Node a(cluster, "a", {.identity = "two", .machine = "the machine two", .now = [&] {
                          return LockArbiter::Clock::now() + later;
                        }});
  a.finish(a.ask());  // nobody knows yet
  a.work();
  ASSERT_TRUE(*a.lives().leave(kBlob));
  a.work();
  EXPECT_TRUE(a.blobs().is_guarded(kBlob)) << "the other one's second name is the same";
  EXPECT_EQ(a.users(), Names{"a"});
  const Lives::Answer refused = a.ask(true);
  EXPECT_EQ(refused.kind, Kind::error);
  EXPECT_NE(refused.why.find("belongs to the machine one"), std::string::npos) << refused.why;
  other.reset();
  later = 1min;
  cluster.wait_until([&] { return a.removed() == 1; });
}

TEST(LockArbiter, WhoHasNotClaimedItsNameYetGivesNothingUp) {
  Cluster cluster;
  cluster.set_reachable(false);
  Node a(cluster, "a",
         {.identity = "two", .machine = "the machine two", .without_server = WithoutServer::pull});
  a.finish(a.ask());
  ASSERT_TRUE(*a.lives().leave(kBlob));
  a.work();
  EXPECT_TRUE(a.blobs().is_guarded(kBlob)) << "it may be another machine's";
  cluster.set_reachable(true);
  cluster.wait_until([&] { return a.removed() == 1; });
}

TEST(LockArbiter, AServerThatHasBegunAnewIsAskedAgainWhoseTheNameIs) {
  Cluster cluster;
  auto* server = new FaultyServer(cluster, "a");
  LockArbiter one(std::unique_ptr<LockServer>(server),
                  {.node = "a", .identity = "one", .machine = "the machine one"});
  ASSERT_EQ(one.ask_life(), "1");
  ASSERT_FALSE(one.claim_name());
  EXPECT_TRUE(one.has_its_name());
  ASSERT_TRUE(cluster.client("admin").break_hold("node-name", "turnstile-content/a", "a lost store"));
  LockArbiter two(std::make_unique<ClientLockServer>(cluster.client("a"), cluster.client("a")),
                  {.node = "a", .identity = "two", .machine = "the machine two"});
  ASSERT_FALSE(two.claim_name());
  server->life_id = "2";
  ASSERT_EQ(one.ask_life(), "2");
  EXPECT_TRUE(one.claim_name()) << "it is not believed for the rest of its lease";
  EXPECT_FALSE(one.has_its_name());
}

TEST(LockArbiter, WhoMayNotTakeItsNameIsToldWhatItsCredentialLacks) {
  Faulty cluster;
  cluster.server->refuses_names = ClientError{ErrorCode::unauthenticated, "not yours", "forbidden", {}};
  EXPECT_FALSE(cluster.a.claim_name()) << "it starts, and what it has can be read";
  EXPECT_FALSE(cluster.a.has_its_name());
  const Decision pull = cluster.a.begin_write(kBlob, 6);
  EXPECT_EQ(pull.kind, Kind::error);
  EXPECT_NE(pull.why.find("add \"turnstile-content/\""), std::string::npos) << pull.why;
  cluster.server->refuses_names.reset();
  EXPECT_FALSE(cluster.a.claim_name());
  EXPECT_TRUE(cluster.a.has_its_name());
  EXPECT_EQ(cluster.a.begin_write(kBlob, 6).kind, Kind::wait);
}

TEST(LockArbiter, AServerWithoutRoomForItsNameKeepsNoNodeFromGivingSomethingUp) {
  Faulty cluster;
  cluster.server->refuses_names = ClientError{ErrorCode::refused, "full", "too_many_requests", {}};
  EXPECT_FALSE(cluster.a.has_its_name()) << "nobody has been asked";
  EXPECT_FALSE(cluster.a.claim_name());
  EXPECT_TRUE(cluster.a.has_its_name());
  cluster.server->refuses_names = ClientError{ErrorCode::busy, "another has it", "busy", {}};
  EXPECT_TRUE(cluster.a.claim_name());
  EXPECT_FALSE(cluster.a.has_its_name());
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
