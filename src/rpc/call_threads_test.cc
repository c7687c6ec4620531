// Threads that work gets, their number, and their end.
#include "rpc/call_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <set>
#include <thread>

#include "rpc/test_server.h"

namespace turnstile::rpc {
namespace {

TEST(CallThreads, WorkThatWaitsForOtherWorkIsNotInItsWay) {
  CallThreads threads(10);
  std::latch all(10);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(threads.run([&] { all.arrive_and_wait(); }));
  all.wait();
}

TEST(CallThreads, TakesNothingWhenAllAreBusyAndAgainWhenOneIsFree) {
  Events events;
  CallThreads threads(2);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(threads.run([&] {
      events.await("open");
      events.add("done");
    }));
  EXPECT_FALSE(threads.run([] {}));
  events.add("open");
  ASSERT_TRUE(events.await("done", 2));
  while (!threads.run([&] { events.add("later"); })) std::this_thread::yield();
  EXPECT_TRUE(events.await("later"));
}

TEST(CallThreads, AThreadServesOneCallAfterTheOther) {
  Events events;
  CallThreads threads(1);
  std::set<std::thread::id> ids;  // of one thread at a time
  for (size_t i = 1; i <= 100; ++i) {
    while (!threads.run([&] {
      ids.insert(std::this_thread::get_id());
      events.add("done");
    }))
      std::this_thread::yield();
    ASSERT_TRUE(events.await("done", i));
  }
  EXPECT_EQ(ids.size(), 1u);
}

TEST(CallThreads, WhatWorkHoldsIsLetGoWhenItIsDone) {
  CallThreads threads(1);
  std::weak_ptr<int> seen;
  {
    const auto held = std::make_shared<int>(1);
    seen = held;
    ASSERT_TRUE(threads.run([held] {}));
  }
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(9);  // less than a thread is kept
  while (!seen.expired() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(seen.expired());
}

TEST(CallThreads, TheEndWaitsForAllWorkAndTakesNoMore) {
  std::atomic<int> done = 0;
  Events events;
  CallThreads threads(8);
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(threads.run([&] {
      events.await("open");
      ++done;
    }));
  std::thread opener([&] { events.add("open"); });
  threads.wait_for_all();
  EXPECT_EQ(done, 8);
  EXPECT_FALSE(threads.run([] {}));
  opener.join();
}

}  // namespace
}  // namespace turnstile::rpc
