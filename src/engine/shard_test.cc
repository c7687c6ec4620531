// The engine's two levels of lock: the table of resources, pins and deadlines, alone and under threads. Meant
// for ThreadSanitizer; each test also counts what must come out.
#include "engine/shard.h"

#include <atomic>
#include <random>
#include <thread>

#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Runs `body(index)` in so many threads and waits for them.
template <class Body>
void in_threads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

void finish(Shard& shard, Resource& resource, bool empty, Time deadline = kNever) {
  shard.note(resource, empty, deadline);
  shard.unpin(resource);
}

TEST(Shard, FindsWhatWasMadeAndForgetsWhatIsEmpty) {
  Shard shard;
  EXPECT_EQ(shard.pin(ResourceId("r")), nullptr);
  Resource& made = shard.pin_or_create(ResourceId("r"));
  EXPECT_EQ(&shard.pin_or_create(ResourceId("r")), &made);
  EXPECT_EQ(shard.pin(ResourceId("r")), &made);
  finish(shard, made, true);
  finish(shard, made, true);
  EXPECT_EQ(shard.size(), 1u) << "one pin is left";
  finish(shard, made, true);
  EXPECT_EQ(shard.size(), 0u);
}

TEST(Shard, KeepsWhatIsNotEmptyWithoutPins) {
  Shard shard;
  finish(shard, shard.pin_or_create(ResourceId("r")), false);
  EXPECT_EQ(shard.size(), 1u);
  finish(shard, *shard.pin(ResourceId("r")), true);
  EXPECT_EQ(shard.size(), 0u);
}

TEST(Shard, WhoeverPinsAnEmptyResourceInTimeKeepsItAlive) {
  Shard shard;
  Resource& first = shard.pin_or_create(ResourceId("r"));
  Resource* second = shard.pin(ResourceId("r"));
  shard.note(first, true, kNever);
  shard.unpin(first);
  EXPECT_EQ(shard.pin(ResourceId("r")), second);
  shard.unpin(*second);
  finish(shard, *second, false);
  EXPECT_EQ(shard.size(), 1u);
}

// The ids of the next `most` resources of a walk.
std::vector<std::string> walk(Shard& shard, size_t& before, size_t most, std::string_view prefix = {}) {
  std::vector<Resource*> pinned(most);
  const Shard::Some some = shard.pin_some(before, pinned, prefix);
  std::vector<std::string> ids;
  for (size_t i = 0; i < some.pinned; ++i) {
    ids.emplace_back(pinned[i]->id.view());
    shard.unpin(*pinned[i]);
  }
  return ids;
}

TEST(Shard, AWalkPinsAllThatBeginWithAPrefix) {
  Shard shard;
  for (const char* id : {"a", "ab", "b"}) finish(shard, shard.pin_or_create(ResourceId(id)), false);
  size_t before = SIZE_MAX;
  EXPECT_THAT(walk(shard, before, 10, "a"), ::testing::UnorderedElementsAre("a", "ab"));
  EXPECT_EQ(before, 0u);
}

TEST(Shard, AWalkMissesNobodyWhoStaysHoweverManyComeAndGoMeanwhile) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random{seed};
    Shard shard;
    std::vector<std::string> others;
    for (int i = 0; i < 30; ++i) {
      finish(shard, shard.pin_or_create(ResourceId(fmt::format("stays{}", i))), false);
      others.push_back(fmt::format("goes{}", i));
      finish(shard, shard.pin_or_create(ResourceId(others.back())), false);
    }
    std::set<std::string> seen;
    for (size_t before = SIZE_MAX; before > 0;) {
      for (std::string& id : walk(shard, before, 1 + random() % 5)) seen.insert(std::move(id));
      for (int i = 0; i < 4 && !others.empty(); ++i) {
        std::swap(others[random() % others.size()], others.back());
        Resource* gone = shard.pin(ResourceId(others.back()));
        ASSERT_NE(gone, nullptr);
        finish(shard, *gone, true);
        others.pop_back();
      }
      finish(shard, shard.pin_or_create(ResourceId(fmt::format("comes{}", random()))), false);
    }
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(seen.contains(fmt::format("stays{}", i))) << seed;
  }
}

TEST(Shard, GivesWhatIsDueOnceAndForgetsTheDeadlineOfWhatIsErased) {
  Shard shard;
  const Time early{ms(10)}, late{ms(20)};
  finish(shard, shard.pin_or_create(ResourceId("late")), false, late);
  finish(shard, shard.pin_or_create(ResourceId("early")), false, early);
  EXPECT_EQ(shard.next_deadline(), early);
  EXPECT_THAT(shard.pin_due(early - ms(1), 10), IsEmpty());
  const auto due = shard.pin_due(late, 1);
  ASSERT_THAT(due, SizeIs(1));
  EXPECT_EQ(due[0]->id.view(), "early");
  finish(shard, *due[0], true);
  EXPECT_EQ(shard.next_deadline(), late);
  finish(shard, *shard.pin(ResourceId("late")), true, late);
  EXPECT_EQ(shard.next_deadline(), kNever);
  EXPECT_EQ(shard.size(), 0u);
}

TEST(ShardThreads, MakingAndForgettingOneResourceNeverLosesOrKeepsIt) {
  Shard shard;
  std::atomic<int> inside{0};
  in_threads(4, [&](int) {
    for (int i = 0; i < 5'000; ++i) {
      Resource& resource = shard.pin_or_create(ResourceId("r"));
      {
        const Locked lock(resource.mutex);
        EXPECT_EQ(inside.fetch_add(1), 0) << "two threads hold the mutex of one resource";
        inside.fetch_sub(1);
        shard.note(resource, true, i % 3 == 0 ? Time(ms(i)) : kNever);
      }
      shard.unpin(resource);
    }
  });
  EXPECT_EQ(shard.size(), 0u);
}

TEST(EngineThreads, X2_OneReleaseAgainstManyAcquirersGivesOneGrantAGeneration) {
  EngineSettings settings;
  settings.retain_released = Duration(0);  // so that the resource comes and goes with every generation
  RecordingSink sink;
  Engine engine(settings, sink, Token::none);
  const Time now{ms(1)};
  std::atomic<int> holders{0}, grants{0};
  in_threads(4, [&](int index) {
    const std::string node = fmt::format("n{}", index);
    Effects out;
    for (int i = 0; i < 2'000; ++i) {
      out.clear();
      const LockAnswer answer = engine.lock(Ask("job", "r", node).command, now, out);
      if (answer.state != LockState::acquired) continue;
      EXPECT_EQ(holders.fetch_add(1), 0) << "two holders";
      ++grants;
      holders.fetch_sub(1);
      const Token token = answer.token;
      out.clear();
      const UnlockCommand done{lane_of("job", "r"), requester(node), token, true, {}, false};
      EXPECT_EQ(engine.unlock(done, now, out).refusal, Refusal::none);
    }
  });
  std::vector<uint64_t> tokens;
  bool held = false;
  for (const Event& event : sink.log.events) {
    EXPECT_EQ(held, event.kind == EventKind::completed) << "granted and completed take turns in commit order";
    held = event.kind == EventKind::granted;
    if (held) tokens.push_back(uint64_t(event.token));
  }
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end()));
  EXPECT_GE(int(tokens.size()), grants.load());
}

TEST(EngineThreads, X2_WhatTheSinkTookIsTheStateThatIsLeft) {
  RecordingSink sink;
  EngineSettings settings;
  Engine engine(settings, sink, Token::none);
  const Time now{ms(1'000'000)};
  in_threads(4, [&](int index) {
    std::mt19937 random{uint32_t(index)};
    const std::string node = fmt::format("n{}", index);
    Effects out;
    for (int i = 0; i < 1'500; ++i) {
      const char* operation = random() % 2 ? "pull" : "job";
      const std::string resource = fmt::format("r{}", random() % 3);
      out.clear();
      switch (random() % 4) {
        case 0:
        case 1:
          engine.lock(Ask(operation, resource, node).command, now, out);
          break;
        case 2:
          engine.unlock({lane_of(operation, resource), requester(node), {}, random() % 2 == 0, "x", false},
                        now, out);
          break;
        default:
          engine.cancel({lane_of(operation, resource), requester(node)}, now, out);
          break;
      }
    }
  });
  std::vector<std::string> live;
  engine.dump([&](const Record& record) {
    if (record.kind != RecordKind::token_mark) live.push_back(text_of(record));
  });
  std::sort(live.begin(), live.end());
  EXPECT_EQ(TestEngine::load(sink.log.records, now)->facts(), live)
      << "two steps on one resource were recorded out of order";
}

TEST(EngineThreads, X10_EverythingCanBeLookedAtUnderLoad) {
  RecordingSink sink;
  Engine engine(EngineSettings{}, sink, Token::none);
  const Time now{ms(1)};
  std::atomic<int> working{2};
  in_threads(4, [&](int index) {
    Effects out;
    if (index < 2) {
      for (int i = 0; i < 1'500; ++i) {
        const std::string resource = fmt::format("r{}", i % 7), node = fmt::format("n{}", i % 3 + index * 3);
        out.clear();
        engine.lock(Ask("update", resource, node).info("info").command, now, out);
        out.clear();
        engine.add_reference({ResourceId(resource), NodeId(node)}, now, out);
        out.clear();
        engine.unlock({lane_of("update", resource), requester(node), {}, i % 2 == 0, "error", false}, now,
                      out);
        out.clear();
        engine.release_reference({ResourceId(resource), NodeId(node)}, now, out);
      }
      --working;
      return;
    }
    while (working > 0) {
      out.clear();
      const StatusAnswer status = engine.status({lane_of("update", "r1"), {}}, now, out);
      EXPECT_EQ(status.holder ? status.holder->info : "info", "info");
      out.clear();
      ListWalk list({});
      while (!engine.list_some(list, 3, now)) {
      }
      for (const StatusAnswer& each : list.answer().page) EXPECT_EQ(each.lane.operation.text, "update");
      ReleaseNodeWalk release(NodeId("n5"));
      while (!engine.release_node_some(release, 2, now, out, [](Effects&) {})) {
      }
      engine.dump([](const Record& record) { EXPECT_LE(record.error.size(), 5u); });
      engine.for_each_lane([](std::string_view operation, bool, size_t) { EXPECT_EQ(operation, "update"); });
      out.clear();
      engine.expire(now, out, 100, [](Effects&) {});
      EXPECT_GE(engine.next_deadline(), now);
      EXPECT_LE(engine.resource_count(), 7u);
    }
  });
}

}  // namespace
}  // namespace turnstile
