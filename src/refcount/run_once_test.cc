// run_once() against the real server: who runs, who skips, who is refused, and what the counts say then.
#include "turnstile/run_once.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>

#include "refcount/sqlite_connection.h"
#include "refcount/test_support.h"
#include "test/client/server_process.h"

namespace turnstile::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kResource = "sha256:1f";

// A server of the test's own, in memory; `client` or `server` keeps the references.
class RunOnce : public ::testing::Test {
 protected:
  void start(const std::string& references) {
    server_.emplace(std::vector<std::string>{"--store", "memory", "--references", references});
  }
  LockClient client(const std::string& node) { return server_->client(node); }

  Expected<RunOnceOutcome> run(const std::string& node, const std::string& operation,
                               const std::function<WorkResult(Work&)>& function,
                               RunOnceOptions options = {}) {
    auto own = client(node);
    return run_once(own, operation, kResource, function, options);
  }
  // With the counts of this side.
  Expected<RunOnceOutcome> run_counted(const std::string& node, const std::string& operation,
                                       const std::function<WorkResult(Work&)>& function,
                                       RunOnceOptions options = {}) {
    options.references = &references_;
    return run(node, operation, function, options);
  }
  // Pulled by `node`, with a completion that the server keeps, and not used by anybody any more.
  void pull_and_leave(const std::string& node) {
    const auto ran = run_counted(node, operations::kPull, [](Work&) { return WorkResult::succeeded(); });
    ASSERT_TRUE(ran && *ran == RunOnceOutcome::ran);
    ASSERT_TRUE(references_.release_ref(kResource, node));
  }
  Nodes nodes() { return nodes_of(*storage_, kResource); }

  std::optional<ServerProcess> server_;
  std::shared_ptr<RefCountStorage> storage_ = make_memory_storage();
  RefCountManager references_{storage_};
};

ErrorCode code_of(const Expected<RunOnceOutcome>& result) {
  EXPECT_FALSE(result);
  return result ? ErrorCode::not_turnstile : result.error().code;
}

WorkResult never(Work&) {
  ADD_FAILURE() << "must not run";
  return WorkResult::succeeded();
}

WorkResult succeed(Work&) { return WorkResult::succeeded(); }

// For options whose lock() has to wait: counts down when it stands in the queue.
RunOnceOptions telling(std::latch& queued) {
  RunOnceOptions options;
  options.request.on_waiting = [&queued](const WaitingStatus&) {
    if (!queued.try_wait()) queued.count_down();
  };
  return options;
}

TEST_F(RunOnce, TenNodesAtOnceDoItOnceAndAllAreCounted) {
  for (const bool counted : {true, false}) {
    start(counted ? "client" : "server");
    std::atomic<int> calls{0}, ran{0}, skipped{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 10; ++i)
        threads.emplace_back([&, i] {
          RunOnceOptions options;
          if (counted) options.references = &references_;
          const auto outcome = run(
              "node-" + std::to_string(i), operations::kPull,
              [&](Work&) {
                ++calls;
                return WorkResult::succeeded();
              },
              options);
          ASSERT_TRUE(outcome) << outcome.error().message;
          ++(*outcome == RunOnceOutcome::ran ? ran : skipped);
        });
    }
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(skipped, 9);
    EXPECT_EQ(counted ? nodes().size() : client("x").references(kResource)->count, 10u);
  }
}

TEST_F(RunOnce, AfterTwoFailuresTheThirdSucceedsOneAfterTheOther) {
  start("client");
  std::atomic<int> calls{0}, inside{0}, ran{0}, skipped{0}, failed{0};
  const auto fail_twice = [&](Work& work) {
    EXPECT_EQ(++inside, 1);
    const int call = ++calls;
    EXPECT_EQ(work.hold.attempt(), uint32_t(call));
    EXPECT_EQ(work.hold.previous_error(), call == 1 ? "" : "attempt " + std::to_string(call - 1));
    // Everybody must be in the queue, or the attempts would begin anew.
    auto looking = client("looking");
    while (call == 1 && looking.status(operations::kPull, kResource)->queue_length < 9)
      std::this_thread::yield();
    --inside;
    return call < 3 ? WorkResult::failed("attempt " + std::to_string(call)) : WorkResult::succeeded();
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 10; ++i)
      threads.emplace_back([&, i] {
        const auto outcome = run_counted("node-" + std::to_string(i), operations::kPull, fail_twice);
        EXPECT_TRUE(outcome || outcome.error().code == ErrorCode::failed) << outcome.error().message;
        ++(!outcome ? failed : *outcome == RunOnceOutcome::ran ? ran : skipped);
      });
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(skipped, 7);
  EXPECT_EQ(nodes().size(), 8u);  // those that failed do not use it
}

TEST_F(RunOnce, ADeleteSeesWhoWaitsAndMayLeaveItToThem) {
  start("client");
  auto first = client("first");
  auto held = first.lock({.operation = operations::kUpdate, .resource = kResource, .scope = "resource"});
  ASSERT_TRUE(held && held->acquired());
  std::latch delete_queued(1), pull_queued(1);
  std::vector<std::string> seen;
  Expected<RunOnceOutcome> deleted, pulled;
  std::jthread deleting([&] {
    deleted = run_counted(
        "deleter", operations::kDelete,
        [&](Work& work) {
          seen = work.waiters;
          return WorkResult::failed("others wait for it");
        },
        telling(delete_queued));
  });
  delete_queued.wait();
  std::jthread pulling(
      [&] { pulled = run_counted("puller", operations::kPull, succeed, telling(pull_queued)); });
  pull_queued.wait();
  ASSERT_TRUE(held->hold.release(WorkResult::succeeded()));
  deleting.join();
  pulling.join();
  EXPECT_THAT(seen, ElementsAre("puller"));
  EXPECT_EQ(code_of(deleted), ErrorCode::failed);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(*pulled, RunOnceOutcome::ran);
}

TEST_F(RunOnce, P7_ANewReferenceWaitsForADeleteAndThenReallyPulls) {
  start("client");
  pull_and_leave("a");
  std::latch queued(1), deleting(1);
  Expected<RunOnceOutcome> pulled;
  std::jthread puller([&] {
    deleting.wait();
    pulled = run_counted("c", operations::kPull, succeed, telling(queued));
  });
  const auto deleted = run_counted("d", operations::kDelete, [&](Work&) {
    deleting.count_down();
    queued.wait();
    EXPECT_EQ(nodes(), Nodes{});
    return WorkResult::succeeded();
  });
  puller.join();
  ASSERT_TRUE(deleted) << deleted.error().message;
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(*pulled, RunOnceOutcome::ran);
  EXPECT_EQ(nodes(), Nodes{"c"});
}

TEST_F(RunOnce, P7_ADeleteWaitsForANewReferenceAndIsThenRefused) {
  start("client");
  std::latch queued(1), pulling(1);
  Expected<RunOnceOutcome> deleted;
  std::jthread deleter([&] {
    pulling.wait();
    deleted = run_counted("d", operations::kDelete, never, telling(queued));
  });
  const auto pulled = run_counted("c", operations::kPull, [&](Work&) {
    pulling.count_down();
    queued.wait();
    return WorkResult::succeeded();
  });
  deleter.join();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(code_of(deleted), ErrorCode::refused);
  EXPECT_EQ(deleted.error().reason, "referenced");
  EXPECT_THAT(deleted.error().nodes, ElementsAre("c"));
  EXPECT_EQ(nodes(), Nodes{"c"});
}

// The one who leaves, the one who deletes and the one who comes, all at once and many times. Whoever comes
// must find the content there, and be counted; whoever deletes must find nobody counted.
TEST_F(RunOnce, P7_WhoeverIsCountedHasTheContentWhoeverRacesWithWhom) {
  start("client");
  for (int round = 0; round < 40; ++round) {
    std::atomic<bool> content{false};
    const auto pull = [&](Work&) {
      content = true;
      return WorkResult::succeeded();
    };
    const auto remove = [&](Work&) {
      EXPECT_EQ(nodes(), Nodes{});
      content = false;
      std::this_thread::yield();
      EXPECT_EQ(nodes(), Nodes{});
      return WorkResult::succeeded();
    };
    ASSERT_TRUE(run_counted("a", operations::kPull, pull));
    {
      std::jthread leaving([&] { EXPECT_TRUE(references_.release_ref(kResource, "a")); });
      std::jthread deleting([&] { (void)run_counted("d", operations::kDelete, remove); });
      std::jthread coming([&] {
        const auto came = run_counted("c", operations::kPull, pull);
        EXPECT_TRUE(came) << came.error().message;
        EXPECT_TRUE(content);
      });
    }
    EXPECT_TRUE(content);
    EXPECT_EQ(nodes(), Nodes{"c"});
    ASSERT_TRUE(references_.release_ref(kResource, "c"));
    const auto cleaned = run_counted("d", operations::kDelete, remove);
    ASSERT_TRUE(cleaned) << cleaned.error().message;
  }
}

TEST_F(RunOnce, TheServersOwnReferencesRefuseADelete) {
  start("server");
  ASSERT_TRUE(run("a", operations::kPull, succeed));
  const auto refused = run("d", operations::kDelete, never);
  EXPECT_EQ(code_of(refused), ErrorCode::refused);
  EXPECT_EQ(refused.error().reason, "referenced");
}

TEST_F(RunOnce, S17_ASkippedPullIsCountedAlsoWhenNobodyElseIs) {
  start("client");
  pull_and_leave("a");
  const auto skipped = run_counted("c", operations::kPull, never);
  ASSERT_TRUE(skipped) << skipped.error().message;
  EXPECT_EQ(*skipped, RunOnceOutcome::skipped);
  EXPECT_EQ(nodes(), Nodes{"c"});
}

TEST_F(RunOnce, S19_ADereferencingDeleteSkipsWhileOthersUseIt) {
  start("client");
  for (const char* node : {"a", "b"}) ASSERT_TRUE(references_.add_ref(kResource, node));
  RunOnceOptions options;
  options.request.dereference = true;
  EXPECT_EQ(run_counted("a", operations::kDelete, never, options).value(), RunOnceOutcome::skipped);
  EXPECT_EQ(nodes(), Nodes{"b"});
  EXPECT_EQ(run_counted("b", operations::kDelete, succeed, options).value(), RunOnceOutcome::ran);
  EXPECT_EQ(nodes(), Nodes{});
}

TEST_F(RunOnce, AnExceptionIsAFailureWithItsText) {
  start("client");
  const auto failed =
      run_counted("a", operations::kPull, [](Work&) -> WorkResult { throw std::runtime_error("no route"); });
  EXPECT_EQ(code_of(failed), ErrorCode::failed);
  EXPECT_THAT(failed.error().message, HasSubstr("no route"));
  EXPECT_EQ(nodes(), Nodes{});
  EXPECT_EQ(run_counted("b", operations::kPull, succeed).value(), RunOnceOutcome::ran);
}

TEST_F(RunOnce, AHoldThatIsLostMeanwhileIsAnErrorAndCountsNothing) {
  start("client");
  for (const bool noticed : {true, false}) {
    const auto lost = run_counted("a", operations::kPull, [&](Work& work) {
      EXPECT_TRUE(client("admin").break_hold(operations::kPull, kResource, "maintenance"));
      EXPECT_FALSE(noticed && work.hold.renew());
      return WorkResult::succeeded();
    });
    EXPECT_EQ(code_of(lost), ErrorCode::lost);
    EXPECT_EQ(nodes(), Nodes{});
  }
}

TEST_F(RunOnce, P7_ADeleteWhoseHoldWasLostUnnoticedTakesNobodysReference) {
  start("client");
  const auto lost = run_counted("a", operations::kDelete, [&](Work&) {
    EXPECT_TRUE(client("admin").break_hold(operations::kDelete, kResource, "it hangs"));
    EXPECT_TRUE(run_counted("b", operations::kPull, succeed));
    return WorkResult::succeeded();
  });
  EXPECT_EQ(code_of(lost), ErrorCode::lost);
  EXPECT_EQ(nodes(), Nodes{"b"});
  EXPECT_EQ(code_of(run_counted("a", operations::kDelete, never)), ErrorCode::refused);
}

TEST_F(RunOnce, WorkThatCannotBeCountedIsAFailureToTheNextAndAStorageErrorHere) {
  start("client");
  TemporaryDirectory directory;
  const std::string path = directory / "references.db";
  RefCountManager counts(must_open("sqlite", path));
  RunOnceOptions options;
  options.references = &counts;
  const auto failed = run(
      "a", operations::kPull,
      [&](Work&) {
        // The table goes away under the storage.
        auto other = refcount::SqliteConnection::open(path, std::chrono::seconds(10));
        EXPECT_TRUE(other && (*other)->execute("DROP TABLE reference"));
        return WorkResult::succeeded();
      },
      options);
  EXPECT_EQ(code_of(failed), ErrorCode::storage);
  const auto told = client("x").status(operations::kPull, kResource);
  ASSERT_TRUE(told);
  EXPECT_TRUE(!told->completion || !told->completion->success);
}

}  // namespace
}  // namespace turnstile::testing
