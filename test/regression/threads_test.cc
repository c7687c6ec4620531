// Holes of an earlier prototype that only several threads can show: X2, X10. Meant for ThreadSanitizer; each
// also counts what must come out.
#include <atomic>
#include <thread>

#include "engine/test_engine.h"

namespace turnstile {
namespace {

constexpr int kAcquirers = 3;
constexpr Time kNow{std::chrono::milliseconds(1)};

EngineSettings forgetful() {
  EngineSettings settings;
  settings.retain_released = Duration(0);  // so that the resource itself comes and goes
  return settings;
}

// One holder releases while the others ask. Nobody waits: a request that was queued is cancelled, so that the
// resource is erased and made anew all the time, which is where the prototype lost its mutex.
TEST(Regression, X2_OneReleaseAgainstManyAcquirersIsOneGrantAGeneration) {
  RecordingSink sink;
  Engine engine(forgetful(), sink, Token::none);
  const LaneName lane = lane_of("job", "r");
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kAcquirers; ++i) {
    threads.emplace_back([&, node = fmt::format("n{}", i)] {
      Effects out;
      for (int round = 0; round < 2'000; ++round) {
        out.clear();
        const LockAnswer answer = engine.lock(Ask("job", "r", node).command, kNow, out);
        const Token token = answer.token;
        if (answer.state == LockState::queued) {
          out.clear();
          engine.cancel({lane, requester(node)}, kNow, out);
          continue;
        }
        ASSERT_EQ(answer.state, LockState::acquired);
        EXPECT_EQ(inside.fetch_add(1), 0) << "two hold at once";
        std::this_thread::yield();
        inside.fetch_sub(1);
        out.clear();
        const UnlockCommand done{lane, requester(node), token, true, {}, false};
        EXPECT_EQ(engine.unlock(done, kNow, out).refusal, Refusal::none) << "a grant was lost";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  Token last{};
  const Event* before = nullptr;
  for (const Event& event : sink.log.events) {
    if (event.kind == EventKind::cancelled) continue;
    const bool granted = event.kind == EventKind::granted;
    EXPECT_EQ(granted, before == nullptr || before->kind != EventKind::granted)
        << "exactly one grant a generation";
    if (granted) {
      EXPECT_GT(event.token, last);
      last = event.token;
    }
    before = &event;
  }
  EXPECT_EQ(engine.resource_count(), 0u) << "and nothing is left behind";
}

// N acquirers queue up behind one holder that releases again and again: each release grants exactly one of
// them.
TEST(Regression, X2_EveryReleaseGrantsExactlyOneOfTheWaiters) {
  RecordingSink sink;
  Engine engine(forgetful(), sink, Token::none);
  constexpr int kRounds = 300;
  std::atomic<int> granted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kAcquirers; ++i) {
    threads.emplace_back([&, node = fmt::format("n{}", i)] {
      Effects out;
      for (int round = 0; round < kRounds;) {
        out.clear();
        const LockAnswer answer = engine.lock(Ask("job", "r", node).command, kNow, out);
        if (answer.state != LockState::acquired) {
          std::this_thread::yield();
          continue;
        }
        const UnlockCommand done{
            lane_of("job", "r"), requester(node), answer.token, round % 2 == 0, "x", false};
        out.clear();
        EXPECT_EQ(engine.unlock(done, kNow, out).refusal, Refusal::none);
        ++granted;
        ++round;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, kAcquirers * kRounds);
  const auto grants = std::count_if(sink.log.events.begin(), sink.log.events.end(),
                                    [](const Event& event) { return event.kind == EventKind::granted; });
  EXPECT_EQ(grants, kAcquirers * kRounds);
  EXPECT_EQ(engine.resource_count(), 0u);
}

// Threads that do not even conflict, on a resource that is forgotten whenever none of them uses it: whoever
// asks at that very moment must not be given the one that is being thrown away. References make the shortest
// steps, so that the moment is met often.
TEST(Regression, X2_NothingIsLostWhenTheResourceIsForgottenAtTheSameMoment) {
  RecordingSink sink;
  sink.wants = false;
  Engine engine(forgetful(), sink, Token::none);
  std::vector<std::thread> threads;
  for (int i = 0; i < kAcquirers; ++i) {
    threads.emplace_back([&, node = fmt::format("n{}", i)] {
      Effects out;
      for (int round = 0; round < 30'000; ++round) {
        out.clear();
        ASSERT_TRUE(engine.add_reference({ResourceId("r"), NodeId(node)}, kNow, out).changed);
        out.clear();
        ASSERT_TRUE(engine.release_reference({ResourceId("r"), NodeId(node)}, kNow, out).changed)
            << "it was lost";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(engine.resource_count(), 0u);
}

void work_on_a_few_resources(Engine& engine, const std::string& node) {
  Effects out;
  for (int round = 0; round < 4'000; ++round) {
    const std::string resource = fmt::format("r{}", round % 3);
    const LaneName lane = lane_of("pull", resource);
    out.clear();
    engine.lock(Ask("pull", resource, node).info("some text").monitor(1).command, kNow, out);
    out.clear();
    engine.renew({lane, requester(node), Token::none, ms(1000), Progress{uint64_t(round), 4'000}}, kNow, out);
    out.clear();
    engine.unlock({lane, requester(node), Token::none, round % 9 == 0, "some error", round % 7 == 0}, kNow,
                  out);
    out.clear();
    engine.release_reference({ResourceId(resource), NodeId(node)}, kNow, out);
  }
}

TEST(Regression, X10_StatusListGaugesAndSnapshotAreReadUnderLoadWithoutARace) {
  RecordingSink sink;
  sink.wants = false;
  EngineSettings settings = forgetful();
  settings.retain_completed = settings.retain_permanent_failure = settings.claim_timeout = Duration(0);
  Engine engine(settings, sink, Token::none);
  std::atomic<int> working{2};
  std::atomic<size_t> seen{0};
  std::vector<std::thread> threads;
  for (const char* node : {"n0", "n1"}) {
    threads.emplace_back([&, node] {
      work_on_a_few_resources(engine, node);
      --working;
    });
  }
  threads.emplace_back([&] {
    Effects out;
    while (working > 0) {
      out.clear();
      const StatusAnswer status = engine.status({lane_of("pull", "r1"), requester("n0")}, kNow, out);
      for (const QueueView& waiter : status.queue) seen += waiter.info.size();
      ListWalk list({});
      while (!engine.list_some(list, 2, kNow)) {
      }
      for (const StatusAnswer& each : list.answer().page) seen += each.lane.resource.text.size();
      out.clear();
      seen += engine.references({ResourceId("r1"), NodeId()}, out).nodes.size();
    }
  });
  threads.emplace_back([&] {
    while (working > 0) {
      engine.for_each_lane([&](std::string_view, bool held, size_t waiters) { seen += held + waiters; });
      engine.dump([&](const Record& record) { seen += record.error.size() + record.who.node.text.size(); });
      seen += engine.resource_count() + (engine.next_deadline() == kNever);
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace turnstile
