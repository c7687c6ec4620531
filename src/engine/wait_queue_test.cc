// The queue of one lane against a plain list, short and long: the index by requester and the space before the
// head must not show.
#include "engine/wait_queue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace turnstile {
namespace {

std::unique_ptr<Waiter> waiter(uint64_t ticket, std::string_view node, std::string_view request = {}) {
  auto made = std::make_unique<Waiter>();
  made->ticket = ticket;
  made->node = Text(node);
  made->request = Text(request);
  return made;
}

Requester who(std::string_view node, std::string_view request = {}) {
  return {NodeId(node), RequestId(request)};
}

Time at(int64_t us) { return Time(Duration(us)); }

TEST(WaitQueue, FirstInFirstOut) {
  WaitQueue queue;
  EXPECT_TRUE(queue.empty());
  queue.add(waiter(1, "a"));
  queue.add(waiter(2, "b"));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.remove(queue.front())->node.view(), "a");
  EXPECT_EQ(queue.front().node.view(), "b");
  queue.remove(queue.front());
  EXPECT_TRUE(queue.empty());
}

TEST(WaitQueue, RecoveryMayBringTicketsInAnyOrder) {
  WaitQueue queue;
  for (uint64_t ticket : {5, 1, 3}) queue.add(waiter(ticket, fmt::format("n{}", ticket)));
  EXPECT_EQ(queue.at(0).ticket, 1u);
  EXPECT_EQ(queue.at(1).ticket, 3u);
  EXPECT_EQ(queue.at(2).ticket, 5u);
}

TEST(WaitQueue, FindsByRequesterAndByTicket) {
  WaitQueue queue;
  Waiter& added = queue.add(waiter(7, "n", "a"));
  EXPECT_EQ(queue.find(who("n", "a")), &added);
  EXPECT_EQ(queue.find(who("n", "b")), nullptr);
  EXPECT_EQ(queue.find(who("n")), nullptr);
  EXPECT_EQ(queue.find_ticket(7), &added);
  EXPECT_EQ(queue.find_ticket(6), nullptr);
  EXPECT_EQ(queue.find_ticket(8), nullptr);
}

TEST(WaitQueue, ARequesterTwiceIsABugOfOurs) {
  WaitQueue queue;
  queue.add(waiter(1, "n"));
  EXPECT_DEATH(queue.add(waiter(2, "n")), "at most once in a queue");
}

TEST(WaitQueue, KnowsTheFirstThatExcludesEveryOtherOperation) {
  WaitQueue queue;
  EXPECT_EQ(queue.first_resource_scope(), UINT64_MAX);
  queue.add(waiter(1, "a"));
  for (uint64_t ticket : {2, 3}) {
    auto excluding = waiter(ticket, fmt::format("n{}", ticket));
    excluding->scope = Scope::resource;
    queue.add(std::move(excluding));
  }
  EXPECT_EQ(queue.first_resource_scope(), 2u);
  queue.remove(*queue.find_ticket(2));
  EXPECT_EQ(queue.first_resource_scope(), 3u);
  queue.remove(*queue.find_ticket(3));
  EXPECT_EQ(queue.first_resource_scope(), UINT64_MAX);
  for (uint64_t ticket : {9, 8}) {  // a recovery may bring them in any order
    auto excluding = waiter(ticket, fmt::format("n{}", ticket));
    excluding->scope = Scope::resource;
    queue.add(std::move(excluding));
    EXPECT_EQ(queue.first_resource_scope(), ticket);
  }
}

TEST(WaitQueue, KnowsWhenTheFirstGraceIsOver) {
  WaitQueue queue;
  Waiter& a = queue.add(waiter(1, "a"));
  Waiter& b = queue.add(waiter(2, "b"));
  EXPECT_EQ(queue.next_leave(), kNever);
  queue.set_leaves_at(a, at(20));
  queue.set_leaves_at(b, at(10));
  EXPECT_EQ(queue.next_leave(), at(10));
  queue.remove(b);
  EXPECT_EQ(queue.next_leave(), at(20));
  queue.set_leaves_at(a, at(30));
  EXPECT_EQ(queue.next_leave(), at(30));
  queue.set_leaves_at(a, kNever);
  EXPECT_EQ(queue.next_leave(), kNever);
}

// Random additions and removals, front and middle, over lengths below and above the one from which it has an
// index.
TEST(WaitQueue, BehavesAsAPlainListAtAnyLength) {
  std::mt19937 random(42);
  WaitQueue queue;
  std::vector<uint64_t> plain;  // tickets; the requester is named after its ticket
  uint64_t next = 1;
  const auto excludes_all = [](uint64_t ticket) { return ticket % 7 == 0; };
  for (int step = 0; step < 20'000; ++step) {
    const bool growing = (step / 500) % 2 == 0;
    if (plain.empty() || random() % 10 < (growing ? 7u : 3u)) {
      auto added = waiter(next, fmt::format("n{}", next));
      if (excludes_all(next)) added->scope = Scope::resource;
      queue.add(std::move(added));
      plain.push_back(next++);
    } else {
      const size_t index = random() % 2 ? 0 : random() % plain.size();
      const uint64_t ticket = plain[index];
      ASSERT_EQ(queue.remove(*queue.find_ticket(ticket))->ticket, ticket);
      plain.erase(plain.begin() + std::ptrdiff_t(index));
      ASSERT_EQ(queue.find(who(fmt::format("n{}", ticket))), nullptr);
    }
    if (step % 100 == 99) {
      std::vector<uint64_t> leave;
      for (uint64_t ticket : plain)
        if (random() % 3 == 0) leave.push_back(ticket);
      for (uint64_t ticket : leave) queue.set_leaves_at(*queue.find_ticket(ticket), at(1 + random() % 9));
      if (!plain.empty() && leave.empty()) queue.set_leaves_at(queue.front(), at(10));
      const auto taken = queue.take_due_to_leave(at(9));
      ASSERT_EQ(taken.size(), leave.size());
      for (size_t i = 0; i < leave.size(); ++i) ASSERT_EQ(taken[i]->ticket, leave[i]);
      std::erase_if(plain, [&](uint64_t ticket) { return std::ranges::binary_search(leave, ticket); });
      if (!queue.empty()) queue.set_leaves_at(queue.front(), kNever);
      ASSERT_EQ(queue.next_leave(), kNever);
    }
    ASSERT_EQ(queue.size(), plain.size());
    const auto first = std::ranges::find_if(plain, excludes_all);
    ASSERT_EQ(queue.first_resource_scope(), first == plain.end() ? UINT64_MAX : *first);
    if (plain.empty()) continue;
    const size_t index = random() % plain.size();
    ASSERT_EQ(queue.at(index).ticket, plain[index]);
    ASSERT_EQ(queue.front().ticket, plain[0]);
    const Waiter* found = queue.find(who(fmt::format("n{}", plain[index])));
    ASSERT_NE(found, nullptr);
    ASSERT_EQ(queue.position(*found), index + 1);
  }
}

}  // namespace
}  // namespace turnstile
