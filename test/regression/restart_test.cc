// Holes of an earlier prototype that a restart shows: X8, X9. The engine's part; that the records are really
// on a disk is shown by the process tests.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;

TEST(Regression, X8_TokensGrowOverRelease) {
  TestEngine t;
  Token last{};
  for (int i = 0; i < 100; ++i) {
    const Token token = t.lock("job", fmt::format("r{}", i % 3), "n1").token;
    EXPECT_GT(token, last);
    last = token;
    if (i % 2)
      t.succeed("job", fmt::format("r{}", i % 3), "n1");
    else
      t.break_hold("job", fmt::format("r{}", i % 3), "x");
  }
}

TEST(Regression, X8_TokensGrowOverACrashThatIsReadFromTheLog) {
  Token last{};
  std::vector<std::unique_ptr<TestEngine>> lives;
  std::vector<Record> log;
  for (int life = 0; life < 5; ++life) {
    lives.push_back(TestEngine::load(log, Time(ms(1'000'000))));
    TestEngine& t = *lives.back();
    for (int i = 0; i < 3; ++i) {
      const Token token = t.lock("job", "r", "n1").token;
      EXPECT_GT(token, last);
      last = token;
      t.succeed("job", "r", "n1");
    }
    log.insert(log.end(), t.sink.log.records.begin(), t.sink.log.records.end());
  }
}

TEST(Regression, X8_TokensGrowOverACrashAlthoughNoHoldIsLeft) {
  TestEngine t;
  const Token used = t.lock("job", "r", "n1").token;
  t.succeed("job", "r", "n1");
  std::vector<Record> marks;
  for (const Record& record : t.sink.log.records)
    if (record.kind == RecordKind::token_mark) marks.push_back(record);
  EXPECT_GT(TestEngine::load(marks, t.now)->lock("job", "r", "n1").token, used) << "the mark alone suffices";
}

TEST(Regression, X8_TokensGrowOverARestartFromASnapshot) {
  TestEngine t;
  Token used{};
  for (int i = 0; i < 10; ++i) {
    used = t.lock("job", "r", "n1").token;
    t.succeed("job", "r", "n1");
  }
  t.pass(60'000);
  ASSERT_EQ(t.engine.resource_count(), 0u) << "only the counter is left to remember";
  auto again = TestEngine::load(t.dump().records, t.now);
  EXPECT_GT(again->lock("job", "r", "n1").token, used);
}

TEST(Regression, X8_TokensGrowOverARestoreWithALargerFirstToken) {
  TestEngine t;
  t.lock("job", "r", "n1");
  auto restored = TestEngine::load(t.sink.log.records, t.now, {}, 1'000'000'000);
  EXPECT_EQ(restored->lock("job", "s", "n1").token, Token(1'000'000'001));
  auto lower = TestEngine::load(restored->sink.log.records, t.now, {}, 5);
  EXPECT_GT(lower->lock("job", "t", "n1").token, Token(1'000'000'001)) << "a lower one does not take it back";
}

TEST(Regression, X9_ARestartForgetsNothing) {
  TestEngine t;
  const Token held = t.lock(Ask("pull", "r", "n1").request("a")).token;
  for (const char* node : {"n2", "n3", "n4"}) t.lock("pull", "r", node);
  const Token released = t.lock("pull", "done", "n1").token;
  t.succeed("pull", "done", "n1", released);
  t.add_reference("used", "n5");

  for (const bool from_snapshot : {false, true}) {
    SCOPED_TRACE(from_snapshot ? "from a snapshot" : "from the log");
    const OwnedLog snapshot = t.dump();
    auto again = TestEngine::load(from_snapshot ? snapshot.records : t.sink.log.records, t.now);
    EXPECT_EQ(again->holder("pull", "r"), "n1/a");
    EXPECT_EQ(again->status("pull", "r", "n1", "a").token, held);
    EXPECT_THAT(again->queue("pull", "r"), ElementsAre("n2", "n3", "n4"));
    EXPECT_EQ(again->status("pull", "done").state, LaneState::completed);
    EXPECT_TRUE(again->succeed("pull", "done", "n1", released).already);
    EXPECT_THAT(again->references("done"), ElementsAre("n1"));
    EXPECT_THAT(again->references("used"), ElementsAre("n5"));
    EXPECT_GT(again->lock("job", "new", "n1").token, released);
  }
}

}  // namespace
}  // namespace turnstile
