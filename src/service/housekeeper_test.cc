// What happens by itself goes on, whatever callers do not do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "journal/journal.h"
#include "service/service.h"

namespace turnstile {
namespace {

// A loop whose connections take no answer.
class StuckLoop : public LoopPort {
 public:
  void post(std::function<void()>) override {}
  void answer_poll(const PollAnswer&) override {}
  void send_events(const std::vector<Delivery>&) override {}
  void open_gate(uint64_t) override {}
  void tick() override {}
  bool wants_ticks() const override { return false; }
};

LockCommand lock(std::string_view operation, std::string_view resource, std::string_view node) {
  LockCommand command;
  command.lane = {OperationName(operation), ResourceId(resource)};
  command.who.node = NodeId(node);
  return command;
}

TEST(Housekeeper, S22_LeasesEndAlthoughThousandsDoNotReadTheirAnswers) {
  EngineSettings settings;
  StuckLoop loop;
  Metrics metrics(settings.operations);
  auto begun = Service::begin(settings, make_memory_journal(), 1, metrics, [](const Error&) {});
  ASSERT_TRUE(begun) << begun.error().message;
  Service& service = **begun;
  service.attach(0, loop);
  service.start();

  Effects effects;
  LockCommand ask = lock("once", "r", "holder");
  service.engine().lock(ask, service.now(), effects);
  for (uint64_t i = 1; i <= 5000; ++i) {
    const std::string node = fmt::format("n{}", i);
    ask.who.node = NodeId(node);
    ask.poll = PollId(i);
    effects.clear();
    service.engine().lock(ask, service.now(), effects);
  }
  effects.clear();
  UnlockCommand done;
  done.lane = ask.lane;
  done.who.node = NodeId("holder");
  service.engine().unlock(done, service.now(), effects);
  service.distribute(effects, nullptr);

  LockCommand leased = lock("t", "leased", "n");
  leased.lease = std::chrono::milliseconds(100);
  effects.clear();
  service.engine().lock(leased, service.now(), effects);
  const auto is_held = [&] {
    effects.clear();
    return service.engine().status({leased.lane, {}}, service.now(), effects).holder.has_value();
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (is_held() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(is_held());
}

// One that makes its callers wait while it is shut.
class Turnpike : public StuckLoop {
 public:
  void post(std::function<void()> work) override {
    work();
    is_passed = true;
    is_shut.wait(true);
  }
  std::atomic<bool> is_passed = false, is_shut = false;
};

// Of two long queues the second is told in the same look as the first, while close() waits for that look.
TEST(Housekeeper, S34_IsClosedWhileItTellsThousandsOfTheirEnd) {
  EngineSettings settings;
  Turnpike loop;
  Metrics metrics(settings.operations);
  auto begun = Service::begin(settings, make_memory_journal(), 1, metrics, [](const Error&) {});
  ASSERT_TRUE(begun) << begun.error().message;
  Service& service = **begun;
  service.attach(0, loop);

  Effects effects;
  uint64_t poll = 0;
  for (const char* resource : {"r", "s"}) {
    LockCommand ask = lock("once", resource, "holder");
    service.engine().lock(ask, service.now(), effects);
    for (uint32_t i = 0; i < 4 * settings.most_told; ++i) {
      const std::string node = fmt::format("n{}", i);
      ask.who.node = NodeId(node);
      ask.poll = PollId(++poll);
      effects.clear();
      service.engine().lock(ask, service.now(), effects);
    }
  }
  for (const char* resource : {"r", "s"}) {
    effects.clear();
    UnlockCommand done;
    done.lane = {OperationName("once"), ResourceId(resource)};
    done.who.node = NodeId("holder");
    service.engine().unlock(done, service.now(), effects);
    service.distribute(effects, nullptr);
  }
  loop.is_passed = false;
  loop.is_shut = true;
  service.start();
  while (!loop.is_passed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::jthread closer([&] { service.close(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it has begun by then, mostly
  loop.is_shut = false;
  loop.is_shut.notify_all();
}

}  // namespace
}  // namespace turnstile
