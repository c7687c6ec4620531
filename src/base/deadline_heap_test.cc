#include "base/deadline_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace turnstile {
namespace {

struct Item {
  HeapPlace place = kNotInHeap;
  Time deadline = kNever;
};
using Heap = DeadlineHeap<Item, &Item::place>;

Time at(int64_t us) { return Time(Duration(us)); }

TEST(DeadlineHeap, GivesWhatIsDueInOrderAndNothingEarly) {
  Heap heap;
  Item a, b, c;
  heap.set(a, at(30));
  heap.set(b, at(10));
  heap.set(c, at(20));
  EXPECT_EQ(heap.take_due(at(9)), nullptr);
  EXPECT_EQ(heap.take_due(at(20)), &b);
  EXPECT_EQ(heap.take_due(at(20)), &c);
  EXPECT_EQ(heap.take_due(at(20)), nullptr);
  EXPECT_EQ(heap.next(), at(30));
}

TEST(DeadlineHeap, NeverTakesAnItemOut) {
  Heap heap;
  Item a;
  heap.set(a, at(1));
  heap.set(a, kNever);
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(a.place, kNotInHeap);
}

TEST(DeadlineHeap, AgreesWithASortedListUnderRandomChanges) {
  std::mt19937 random(7);
  Heap heap;
  std::vector<Item> items(200);
  for (int step = 0; step < 20'000; ++step) {
    Item& item = items[random() % items.size()];
    item.deadline = random() % 4 == 0 ? kNever : at(int64_t(random() % 1000));
    heap.set(item, item.deadline);
    Time first = kNever;
    for (const Item& each : items) first = std::min(first, each.deadline);
    ASSERT_EQ(heap.next(), first);
  }
}

}  // namespace
}  // namespace turnstile
