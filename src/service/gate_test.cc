// The gate with a journal that is durable when the test says so, and loops that run when it says so.
#include "service/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ManualJournal : public Journal {
 public:
  Result<Recovered> recover(const Load&) override { return Recovered{}; }
  void start(std::function<void(uint64_t)>, std::function<void(Error)>) override {}
  uint64_t append(std::span<const Record>, Time, uint64_t last_event) override {
    marked = last_event;
    return ++appended;
  }
  uint64_t durable() const override {
    const uint64_t now = safe;
    if (on_look) std::exchange(on_look, {})();
    return now;
  }
  bool keeps_records() const override { return true; }
  bool overloaded() const override { return false; }
  Result<void> snapshot(const Dump&, std::stop_token) override { return {}; }
  bool wants_snapshot() const override { return false; }
  void stop() override {}

  uint64_t appended = 0, marked = 0;
  std::atomic<uint64_t> safe{0};
  mutable std::function<void()> on_look;  // once, behind the next look at durable()
};

class ManualLoop : public LoopPort {
 public:
  void post(std::function<void()> task) override {
    tasks.push_back(std::move(task));
    ++posts;
  }
  void answer_poll(const PollAnswer&) override {}
  void send_events(const std::vector<Delivery>& deliveries) override {
    for (const Delivery& each : deliveries) events.push_back(each.id);
  }
  void open_gate(uint64_t sequence) override {
    opened.push_back(sequence);
    if (on_open) std::exchange(on_open, {})();
  }
  void tick() override {}
  bool wants_ticks() const override { return false; }
  void run() {
    for (const auto& task : std::exchange(tasks, {})) task();
  }

  std::vector<std::function<void()>> tasks;
  std::atomic<int> posts{0};
  std::vector<uint64_t> opened, events;
  std::function<void()> on_open;  // once, while what waits behind the gate asks again
};

class GateTest : public ::testing::Test {
 protected:
  GateTest() {
    for (ManualLoop& loop : loops_) {
      links_.push_back(std::make_shared<LoopLink>());
      links_.back()->port = &loop;
    }
    gate_.attach(log_, router_, 0);
    router_.subscribe(0, SubscriberId(1), Filter::everything());
  }
  // A step with a record and an event. Returns its sequence; effects_.step is what its receipt says.
  uint64_t commit() {
    effects_.clear();
    Record record;
    record.kind = RecordKind::hold_erased;
    effects_.records.push_back(record);
    effects_.events.push_back({});
    return gate_.commit(effects_);
  }
  void become_durable(uint64_t sequence) {
    journal_.safe = sequence;
    gate_.durable(sequence);
  }
  void answered(uint64_t step) {
    const auto id = StepId(step);
    gate_.answered({&id, 1});
    loops_[0].run();
  }

  ManualJournal journal_;
  static constexpr unsigned kLoops = 32;
  ManualLoop loops_[kLoops];
  LoopLinks links_;
  Gate gate_{journal_, links_, [](double) {}};
  EventLog log_{100, {.durable_store = true}};
  Router router_{log_, [](uint64_t, const Event&) { return std::string("e"); },
                 [this](unsigned loop, std::vector<Delivery>&& deliveries) {
                   post(links_[loop], [shared = std::make_shared<std::vector<Delivery>>(std::move(
                                           deliveries))](LoopPort& port) { port.send_events(*shared); });
                 }};
  Effects effects_;
};

TEST_F(GateTest, S31_AnAnswerMayLeaveWhenItsStepIsDurableAndItsLoopIsToldOnce) {
  const uint64_t first = commit(), second = commit();
  EXPECT_FALSE(gate_.may_leave(0, first));
  EXPECT_FALSE(gate_.may_leave(0, second));
  become_durable(first);
  EXPECT_EQ(loops_[0].tasks.size(), 1u);
  EXPECT_TRUE(gate_.may_leave(0, first));
  EXPECT_FALSE(gate_.may_leave(0, second));
  become_durable(second);
  EXPECT_EQ(loops_[0].tasks.size(), 1u) << "it has not looked yet";
  loops_[0].run();
  EXPECT_THAT(loops_[0].opened, ElementsAre(second));
  EXPECT_THAT(loops_[1].tasks, IsEmpty()) << "none of its answers waits";
}

// The four ways in which the journal can be done just when a loop begins to wait. Each would be a wake that
// is lost: an answer that leaves only when somebody else changes something.
TEST_F(GateTest, S31_WhatBecomesDurableWhileALoopBeginsToWaitMayLeave) {
  const uint64_t sequence = commit();
  journal_.on_look = [&] { become_durable(sequence); };
  EXPECT_TRUE(gate_.may_leave(0, sequence));
}

TEST_F(GateTest, S31_ALoopIsToldOfWhatBecomesDurableBehindItsLastLook) {
  const uint64_t sequence = commit();
  journal_.on_look = [&] { journal_.on_look = [&] { become_durable(sequence); }; };
  EXPECT_FALSE(gate_.may_leave(0, sequence));
  EXPECT_EQ(loops_[0].tasks.size(), 1u);
}

TEST_F(GateTest, S31_ALoopIsToldAgainOfWhatBecomesDurableWhileItOpensItsGate) {
  const uint64_t first = commit(), second = commit();
  EXPECT_FALSE(gate_.may_leave(0, first));
  become_durable(first);
  loops_[0].on_open = [&] {
    EXPECT_FALSE(gate_.may_leave(0, second));
    become_durable(second);
  };
  loops_[0].run();
  EXPECT_EQ(loops_[0].tasks.size(), 1u);
  loops_[0].run();
  EXPECT_THAT(loops_[0].opened, ElementsAre(first, second));
}

// Keeps a thread on one processor, where there is that one: a busy machine may have two threads that talk to
// each other take turns on the same.
class OnProcessor {
 public:
  explicit OnProcessor(int number) {
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    CPU_SET(number, &wanted);
    ::sched_getaffinity(0, sizeof before_, &before_);
    ::sched_setaffinity(0, sizeof wanted, &wanted);
  }
  ~OnProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OnProcessor(const OnProcessor&) = delete;
  OnProcessor& operator=(const OnProcessor&) = delete;

 private:
  cpu_set_t before_{};
};

// The moment is between two instructions of durable(), so that two threads have to meet there: they go
// through the loops towards each other, again and again.
TEST_F(GateTest, S31_ALoopThatWaitsForMoreWhileItIsToldIsToldOfThatToo) {
  constexpr int kRounds = 3'000;
  std::atomic<int> begun{0}, ended{0};
  std::atomic<uint64_t> sequence{0};
  const auto await = [](const std::atomic<int>& counter, int round, const std::stop_token& stop) {
    for (int looks = 0; counter < round && !stop.stop_requested(); ++looks)
      if (looks > 50'000) std::this_thread::yield();
  };
  const OnProcessor here(0);
  const std::jthread journal([&](const std::stop_token& stop) {
    const OnProcessor there(1);
    for (int round = 1; round <= kRounds; ++round) {
      await(begun, round, stop);
      if (stop.stop_requested()) return;
      become_durable(sequence);
      ended = round;
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    const uint64_t first = commit(), second = commit();
    for (unsigned loop = 0; loop < kLoops; ++loop) EXPECT_FALSE(gate_.may_leave(loop, first));
    sequence = first;
    const int posts = loops_[0].posts;
    begun = round;
    await(loops_[0].posts, posts + 1, {});  // it is on its way
    for (unsigned loop = kLoops; loop-- > 0;) EXPECT_FALSE(gate_.may_leave(loop, second));
    await(ended, round, {});
    for (ManualLoop& loop : loops_) loop.run();
    become_durable(second);
    for (ManualLoop& loop : loops_) {
      ASSERT_EQ(loop.tasks.size(), 1u) << "in round " << round;
      loop.run();
    }
  }
}

TEST_F(GateTest, S31_AReadThatChangesNothingWaitsForTheLatestStep) {
  const uint64_t latest = commit();
  EXPECT_EQ(gate_.latest(), latest);
  EXPECT_FALSE(gate_.may_leave(1, gate_.latest()));
  become_durable(latest);
  EXPECT_TRUE(gate_.may_leave(1, gate_.latest()));
}

// A journal that is shared: another server may have taken it over.
class SharedJournal final : public ManualJournal {
 public:
  bool guards_reads() const override { return true; }
  uint64_t barrier() override { return ++appended; }
};

TEST(SharedGate, S42_AReadWaitsForAWriteThatBeginsAfterItHoweverLittleHasChanged) {
  SharedJournal journal;
  LoopLinks links{std::make_shared<LoopLink>()};
  Gate gate(journal, links, [](double) {});
  const uint64_t read = gate.latest();
  EXPECT_FALSE(gate.may_leave(0, read));
  journal.safe = read;
  EXPECT_TRUE(gate.may_leave(0, read));
  EXPECT_FALSE(gate.may_leave(0, gate.latest())) << "the next one needs a write of its own";
}

// A journal of a term, whose time ends by itself.
class JournalOfATerm final : public ManualJournal {
 public:
  const std::function<bool()>* is_over() const override { return &asked; }
  bool over = false;
  const std::function<bool()> asked = [this] { return over; };
};

TEST(SharedGate, S47_WhenTheTimeOfATermIsOverNotEvenWhatIsDurableMayLeave) {
  JournalOfATerm journal;
  LoopLinks links{std::make_shared<LoopLink>()};
  Gate gate(journal, links, [](double) {});
  journal.safe = 1;
  EXPECT_TRUE(gate.may_leave(0, 1));
  journal.over = true;
  EXPECT_FALSE(gate.may_leave(0, 1));
  EXPECT_TRUE(gate.is_over());
}

TEST_F(GateTest, S30_EventsAreSeenWhenTheirAnswerIsWithTheKernelAndNotBefore) {
  const uint64_t first = commit();
  const uint64_t first_step = effects_.step;
  const uint64_t second = commit();
  const uint64_t second_step = effects_.step;
  become_durable(second);
  answered(second_step);
  EXPECT_THAT(loops_[0].events, IsEmpty()) << "they leave in the order of the commits";
  answered(first_step);
  EXPECT_THAT(loops_[0].events, ElementsAre(100, 101));
  EXPECT_TRUE(gate_.may_leave(0, first));
}

TEST_F(GateTest, S30_TheEventsOfAStepThatNobodyIsAnsweredByWaitOnlyForTheDisk) {
  const uint64_t sequence = commit();
  gate_.unanswered(effects_);
  EXPECT_THAT(loops_[0].tasks, IsEmpty());
  become_durable(sequence);
  loops_[0].run();
  EXPECT_THAT(loops_[0].events, ElementsAre(100));
}

TEST_F(GateTest, S32_AfterAFailedWriteNothingPasses) {
  const uint64_t first = commit(), second = commit();
  become_durable(first);
  ASSERT_TRUE(gate_.may_leave(0, first));
  gate_.close();
  EXPECT_FALSE(gate_.may_leave(0, first)) << "not even what was safe: the caller would trust us further";
  become_durable(second);
  EXPECT_FALSE(gate_.may_leave(0, second));
  EXPECT_THAT(loops_[0].tasks, IsEmpty());
}

TEST_F(GateTest, S28_TheJournalIsToldTheIdOfTheLatestEvent) {
  commit();
  commit();
  EXPECT_EQ(journal_.marked, 101u);
  EXPECT_EQ(gate_.last_event(), 101u);
}

TEST_F(GateTest, ALoopWhoseServiceHasEndedIsToldNothing) {
  const uint64_t sequence = commit();
  EXPECT_FALSE(gate_.may_leave(0, sequence));
  become_durable(sequence);
  links_[0]->ended = true;
  loops_[0].run();
  EXPECT_THAT(loops_[0].opened, IsEmpty());
}

}  // namespace
}  // namespace turnstile
