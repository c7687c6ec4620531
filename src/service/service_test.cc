// A life of the state begins with what the one before has left: its times, and the ids of its events.
#include "service/service.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

namespace turnstile {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Keeps nothing but the marks of its last snapshot, and has what a test puts into it.
class TestJournal final : public Journal {
 public:
  explicit TestJournal(std::map<RecordKind, uint64_t>& marks, std::vector<Record> records = {})
      : marks_(marks), records_(std::move(records)) {}

  Result<Recovered> recover(const Load& load) override {
    for (const Record& record : records_) load(record);
    for (const auto& [kind, number] : marks_) {
      Record mark;
      mark.kind = kind;
      mark.number = number;
      load(mark);
    }
    return Recovered{};
  }
  void start(std::function<void(uint64_t)>, std::function<void(Error)>) override {}
  uint64_t append(std::span<const Record>, Time, uint64_t) override { return ++appended_; }
  uint64_t durable() const override { return appended_; }
  bool keeps_records() const override { return true; }
  bool overloaded() const override { return false; }
  Result<void> snapshot(const Dump& dump, std::stop_token) override {
    marks_.clear();
    dump([this](const Record& record) {
      if (record.kind == RecordKind::event_mark || record.kind == RecordKind::life_mark)
        marks_[record.kind] = record.number;
    });
    return {};
  }
  bool wants_snapshot() const override { return true; }
  void stop() override {}

 private:
  std::map<RecordKind, uint64_t>& marks_;
  const std::vector<Record> records_;
  uint64_t appended_ = 0;
};

// Passes by so much with each look at it.
class TestTime final : public TimeSource {
 public:
  Time wall() const override { return std::chrono::sys_days(std::chrono::year(2026) / 1 / 1); }
  Duration steady() const override { return now += step; }
  Duration boot() const override { return now; }

  mutable Duration now{0};
  Duration step{0};
};

class ServiceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Service> begin(std::vector<Record> records = {}) {
    auto begun = Service::begin(
        settings_, std::make_unique<TestJournal>(marks_, std::move(records)), 1, metrics_,
        [](const Error&) {}, time_);
    EXPECT_TRUE(begun);
    return *std::move(begun);
  }

  EngineSettings settings_;
  Metrics metrics_{settings_.operations};
  std::map<RecordKind, uint64_t> marks_;
  TestTime time_;
  const LaneName lane_{OperationName("own"), ResourceId("r")};
};

// With a million holds, the times of the first begin seconds before anybody can renew it.
TEST_F(ServiceTest, S31_AfterALoadThatTookLongEveryLeaseBeginsAtItsEnd) {
  Record held;
  held.kind = RecordKind::hold_set;
  held.lane = lane_;
  held.who.node = NodeId("n");
  held.number = 7;
  held.lease = seconds(10);
  time_.step = seconds(4);
  const auto service = begin({held});
  time_.step = {};
  Effects effects;
  const auto is_held = [&] {
    effects.clear();
    service->expire_some(effects);
    effects.clear();
    return service->engine().status({lane_, {}}, service->now(), effects).holder.has_value();
  };
  time_.now += milliseconds(9'999);
  EXPECT_TRUE(is_held());
  time_.now += milliseconds(1);
  EXPECT_FALSE(is_held());
}

TEST_F(ServiceTest, S28_WhoHasSeenTheLastEventBeforeASnapshotHasMissedNothingOverARestart) {
  auto service = begin();
  Effects effects;
  LockCommand lock;
  lock.lane = lane_;
  lock.who.node = NodeId("n");
  service->engine().lock(lock, service->now(), effects);
  const uint64_t last = service->gate().last_event();
  ASSERT_GE(last, service->life()) << "there was an event";
  service->take_snapshot({});
  time_.now += seconds(1);
  service = begin();
  const auto come_back = [&](uint64_t id) {
    return service->router().resume(0, SubscriberId(id), Filter::everything(), id);
  };
  EXPECT_EQ(come_back(last).reset_at, 0u);
  EXPECT_NE(come_back(last - 1).reset_at, 0u) << "that event is not known any more";
}

}  // namespace
}  // namespace turnstile
