// Filters, and the index from lanes to listeners.
#include "events/subscriptions.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "events/testing.h"

namespace turnstile {
namespace {

using events_testing::lane;

Listener listener(uint64_t subscriber, Filter filter, uint64_t after = 0) {
  return {SubscriberId(subscriber), 0, after, std::make_shared<const Filter>(std::move(filter))};
}

std::set<uint64_t> matches(const Subscriptions& all, const LaneName& name, uint64_t id = 1) {
  std::set<uint64_t> found;
  all.for_each_match(id, name, [&](const Listener& each) { found.insert(uint64_t(each.subscriber)); });
  return found;
}

TEST(Filter, ALaneIsItsOperationAndItsResourceWhateverCharactersTheyHold) {
  EXPECT_TRUE(Filter::lane(lane("a:b", "c")).matches(lane("a:b", "c")));
  EXPECT_FALSE(Filter::lane(lane("a:b", "c")).matches(lane("a", "b:c")));
  EXPECT_FALSE(Filter::lane(lane("pull", "c")).matches(lane("pull", "cd")));
}

TEST(Filter, EverythingCanBeNarrowedByPrefixAndOperation) {
  EXPECT_TRUE(Filter::everything().matches(lane("pull", "x")));
  EXPECT_TRUE(Filter::everything("ab").matches(lane("pull", "abc")));
  EXPECT_FALSE(Filter::everything("ab").matches(lane("pull", "a")));
  EXPECT_TRUE(Filter::everything("ab", OperationName("pull")).matches(lane("pull", "ab")));
  EXPECT_FALSE(Filter::everything("ab", OperationName("pull")).matches(lane("delete", "ab")));
}

TEST(Subscriptions, FindLaneListenersAndThoseOfEverything) {
  Subscriptions all;
  all.add(listener(1, Filter::lane(lane("a:b", "c"))));
  all.add(listener(2, Filter::lane(lane("a", "b:c"))));
  all.add(listener(3, Filter::everything("b")));
  EXPECT_EQ(matches(all, lane("a:b", "c")), std::set<uint64_t>{1});
  EXPECT_EQ(matches(all, lane("a", "b:c")), (std::set<uint64_t>{2, 3}));
  EXPECT_EQ(matches(all, lane("a", "z")), std::set<uint64_t>{});
}

TEST(Subscriptions, GiveNoEventAtOrBeforeAListenersPosition) {
  Subscriptions all;
  all.add(listener(1, Filter::lane(lane("pull", "r")), 5));
  all.add(listener(2, Filter::everything(), 5));
  EXPECT_TRUE(matches(all, lane("pull", "r"), 5).empty());
  EXPECT_EQ(matches(all, lane("pull", "r"), 6), (std::set<uint64_t>{1, 2}));
}

TEST(Subscriptions, AgreeWithAPlainListWhileListenersComeAndGo) {
  std::mt19937 random(5);
  Subscriptions all;
  std::map<uint64_t, Filter> plain;
  for (uint64_t step = 1; step < 5000; ++step) {
    const std::string resource = "r" + std::to_string(random() % 5);
    if (random() % 2 == 0) {
      Filter filter = random() % 3 == 0 ? Filter::everything(resource) : Filter::lane(lane("pull", resource));
      plain[step] = filter;
      all.add(listener(step, std::move(filter)));
    } else if (!plain.empty()) {
      auto victim = plain.begin();
      std::advance(victim, long(random() % plain.size()));
      EXPECT_TRUE(all.remove(SubscriberId(victim->first)));
      plain.erase(victim);
    }
    std::set<uint64_t> expected;
    for (const auto& [subscriber, filter] : plain) {
      if (filter.matches(lane("pull", resource))) expected.insert(subscriber);
    }
    ASSERT_EQ(matches(all, lane("pull", resource)), expected);
    ASSERT_EQ(all.size(), plain.size());
  }
  for (const auto& [subscriber, filter] : plain) all.remove(SubscriberId(subscriber));
  EXPECT_EQ(all.lanes(), 0u) << "a lane that nobody listens to takes no memory";
  EXPECT_FALSE(all.remove(SubscriberId(999'999)));
}

}  // namespace
}  // namespace turnstile
