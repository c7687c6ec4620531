// Rule S34 of docs/semantics.md: a queue that ends as a whole ends at once, and is told in slices.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

EngineSettings few_at_once() {
  EngineSettings settings;
  settings.most_told = 3;
  return settings;
}

struct EndedQueues : ::testing::Test {
  // n0 holds, n1 to n20 wait; the even ones with a long poll of their own number.
  EndedQueues() {
    t.lock("pull", "r", "n0");
    for (uint64_t i = 1; i <= 20; ++i) {
      const std::string node = fmt::format("n{}", i);
      i % 2 == 0 ? t.lock(Ask("pull", "r", node).poll(i)) : t.lock("pull", "r", node);
    }
  }
  // The next slice; whether there is another.
  bool go_on() {
    return t.call([&](Effects& out) {
      t.engine.go_on(ResourceId("r"), t.now, out);
      return out.unfinished;
    });
  }
  TestEngine t{few_at_once()};
};

TEST_F(EndedQueues, S34_AreToldAFewInAStepAndAllInTheEnd) {
  t.fail_permanently("pull", "r", "n0", "404");
  EXPECT_THAT(t.wakes, SizeIs(1)) << "of n1, n2 and n3 one polls";
  int slices = 1;
  for (; go_on(); ++slices) {
  }
  EXPECT_EQ(slices, 6) << "17 of them are left, 3 in each";
  ASSERT_THAT(t.wakes, SizeIs(10));
  for (uint64_t i = 2; i <= 20; i += 2) {
    EXPECT_EQ(t.wake(i).state, LockState::failed);
    EXPECT_EQ(t.wake(i).refusal, Refusal::failed);
    EXPECT_EQ(t.wake(i).error, "404");
  }
}

TEST_F(EndedQueues, S34_HaveEndedForEverybodyWhoLooksInTheSameStep) {
  t.fail_permanently("pull", "r", "n0", "404");
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
  EXPECT_EQ(t.status("pull", "r").waiters.count, 0u);
  const StatusAnswer told = t.status("pull", "r", "n20");
  EXPECT_EQ(told.position, 0u);
  EXPECT_TRUE(told.completed);
  EXPECT_EQ(told.error, "404");
  EXPECT_EQ(t.wake(20).error, "404") << "its long poll hears of it in the same step";
  EXPECT_FALSE(t.cancel("pull", "r", "n19"));
  EXPECT_EQ(t.lock("pull", "r", "n17").state, LockState::failed) << "kept, not queued again";
}

TEST_F(EndedQueues, S34_APollThatBreaksOrRunsOutMeanwhileIsAnswered) {
  t.fail_permanently("pull", "r", "n0", "404");
  EXPECT_FALSE(t.end_poll("pull", "r", "n20", 20)) << "the answer is in the effects";
  EXPECT_EQ(t.wake(20).state, LockState::failed);
  t.break_poll("pull", "r", "n18", 18);
  EXPECT_EQ(t.wake(18).state, LockState::failed);
}

TEST_F(EndedQueues, S17_S34_ReferencesOfOpenPollsAreThereAtOnce) {
  t.succeed("pull", "r", "n0");
  EXPECT_THAT(t.references("r"), SizeIs(11)) << "n0 and the ten that poll";
  t.release_reference("r", "n20");
  while (go_on()) {
  }
  EXPECT_THAT(t.references("r"), SizeIs(10)) << "what was released is not added again by telling";
  EXPECT_EQ(t.wake(20).state, LockState::skipped);
}

TEST_F(EndedQueues, S13_S34_SkipsThatHaveNotBeenToldAreVoidedToo) {
  EngineSettings settings = few_at_once();
  settings.server_keeps_references = false;
  TestEngine other(settings);
  other.lock("pull", "r", "n0");
  for (int i = 1; i <= 9; ++i) other.lock("pull", "r", fmt::format("n{}", i));
  other.succeed("pull", "r", "n0");
  other.lock("delete", "r", "d");
  other.succeed("delete", "r", "d");
  EXPECT_EQ(other.lock("pull", "r", "n1").state, LockState::acquired) << "told before";
  EXPECT_EQ(other.lock("pull", "r", "n9").state, LockState::queued) << "not told yet";
}

TEST_F(EndedQueues, S34_GoOnByThemselvesWhenNobodyDoes) {
  t.succeed("pull", "r", "n0");
  EXPECT_LE(t.engine.next_deadline(), t.now);
  for (int i = 0; i < 7; ++i) t.sweep();
  EXPECT_THAT(t.wakes, SizeIs(10));
  EXPECT_GT(t.engine.next_deadline(), t.now);
}

TEST_F(EndedQueues, S31_S34_AreWholeAfterARestartWhereverItHappens) {
  t.fail_permanently("pull", "r", "n0", "404");
  for (int slices = 0; slices < 8; ++slices) {
    OwnedLog facts = t.dump();
    for (const auto* records : {&t.sink.log.records, &facts.records}) {
      const auto again = TestEngine::load(*records, t.now);
      EXPECT_THAT(again->queue("pull", "r"), IsEmpty());
      for (int i = 1; i <= 20; ++i) {
        const StatusAnswer status = again->status("pull", "r", fmt::format("n{}", i));
        EXPECT_TRUE(status.completed) << i;
        EXPECT_EQ(status.error, "404") << i;
      }
    }
    go_on();
  }
}

TEST_F(EndedQueues, S34_TakeOneRecord) {
  const size_t before = t.sink.log.records.size();
  t.fail_permanently("pull", "r", "n0", "404");
  while (go_on()) {
  }
  EXPECT_LE(t.sink.log.records.size() - before, 4u) << "hold, released token, completion, queue";
}

TEST_F(EndedQueues, S20_LeaveNothingBehind) {
  t.succeed("pull", "r", "n0");
  for (int i = 0; i <= 20; ++i) t.release_reference("r", fmt::format("n{}", i));
  t.pass(1'000'000);
  EXPECT_EQ(t.engine.resource_count(), 0u);
  EXPECT_THAT(t.wakes, SizeIs(10));
}

TEST(ManyWaiters, S34_TheirErrorIsKeptOnce) {
  TestEngine t;
  t.lock("pull", "r", "n0");
  for (int i = 0; i < 2000; ++i) t.lock("pull", "r", fmt::format("w{}", i));
  const std::string error(4096, 'e');
  t.fail_permanently("pull", "r", "n0", error);
  t.pass(1);
  Effects scratch;
  std::set<const char*> texts;
  t.engine.dump([&](const Record& record) {
    if (!record.error.empty()) texts.insert(record.error.data());
  });
  EXPECT_EQ(texts.size(), 1u) << "a completion and 2,000 endings";
}

}  // namespace
}  // namespace turnstile
