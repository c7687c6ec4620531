// What the journal's tests share: a small world of facts, and a journal driven one step at a time.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "journal/batch.h"
#include "journal/file_journal.h"
#include "journal/simulated_disk.h"

namespace turnstile::testing {

// Thousands of crashes leave thousands of warnings.
inline const bool kQuiet = (set_log(LogLevel::off, LogFormat::text), true);

inline Time at(int64_t microseconds) { return Time(Duration(microseconds)); }

// Facts by name, as a server would hold them: set and erased by records.
class World {
 public:
  static Record set(std::string_view resource, uint64_t number, std::string_view text = {}) {
    Record record;
    record.kind = RecordKind::hold_set;
    record.lane = {OperationName("pull"), ResourceId(resource)};
    record.number = number;
    record.text = text;
    return record;
  }
  void apply(const Record& record) { facts_[std::string(record.lane.resource.text)] = record.number; }
  void dump(const Journal::Write& write) const {
    for (const auto& [resource, number] : facts_) write(set(resource, number));
  }
  uint64_t operator[](const std::string& resource) const {
    const auto found = facts_.find(resource);
    return found == facts_.end() ? 0 : found->second;
  }
  friend bool operator==(const World&, const World&) = default;

 private:
  std::map<std::string, uint64_t> facts_;
};

// Files small enough that a test of a few dozen steps has several.
inline FileJournalOptions small_options() {
  return {.segment_bytes = 4096,
          .zero_ahead_bytes = 1024,
          .snapshot_after_bytes = 8192,
          .most_pending_bytes = 65536};
}
inline FileJournalOptions one_segment() {
  return {.segment_bytes = 1 << 20,
          .zero_ahead_bytes = 8192,
          .snapshot_after_bytes = 1 << 20,
          .most_pending_bytes = 1 << 20};
}

// Step n sets "last" and one other fact to n: a recovered world that is not the one after some step shows it.
// Every fifth step is longer than a sector.
inline std::vector<Record> step_records(uint64_t n) {
  static const std::string kLong(1300, 'x');
  static const std::vector<std::string> kNames = {"a", "b", "c", "d", "e", "f", "g"};
  return {World::set("last", n), World::set(kNames[n % 7], n, n % 5 == 0 ? std::string_view(kLong) : "")};
}
inline World world_after(uint64_t steps) {
  World world;
  for (uint64_t n = 1; n <= steps; ++n)
    for (const Record& record : step_records(n)) world.apply(record);
  return world;
}

// A journal with its callbacks, waited for instead of slept for.
class DrivenJournal {
 public:
  DrivenJournal(SimulatedDisk& disk, const FileJournalOptions& options)
      : DrivenJournal(make_file_journal(disk.mount(), options)) {}
  explicit DrivenJournal(std::unique_ptr<Journal> from) : journal_(std::move(from)) {}
  ~DrivenJournal() { journal_->stop(); }

  Journal& operator*() { return *journal_; }
  Journal* operator->() { return journal_.get(); }

  // The world that the journal tells of.
  Result<World> recover() {
    World found;
    const auto done = journal_->recover([&](const Record& record) { found.apply(record); });
    if (!done) return std::unexpected(done.error());
    report = *done;
    return found;
  }
  void start() {
    journal_->start(
        [this](uint64_t sequence) {
          std::lock_guard lock(mutex_);
          durable_ = sequence;
          changed_.notify_all();
        },
        [this](Error error) {
          std::lock_guard lock(mutex_);
          errors_.push_back(std::move(error.message));
          changed_.notify_all();
        });
  }
  // Appends step n as a batch of its own; true when it is durable, false when the journal has failed.
  bool commit(uint64_t n) {
    const uint64_t sequence = journal_->append(step_records(n), at(int64_t(n) * 1000));
    return wait(sequence);
  }
  bool wait(uint64_t sequence) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return durable_ >= sequence || !errors_.empty(); });
    return durable_ >= sequence;
  }
  std::vector<std::string> errors() {
    std::lock_guard lock(mutex_);
    return errors_;
  }

  Recovered report;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t durable_ = 0;
  std::vector<std::string> errors_;
  std::unique_ptr<Journal> journal_;
};

// Makes steps 1 to `count` durable, each in a batch of its own, and stops.
inline void write_steps(SimulatedDisk& disk, const FileJournalOptions& options, uint64_t count) {
  DrivenJournal journal(disk, options);
  ASSERT_TRUE(journal.recover());
  journal.start();
  for (uint64_t n = 1; n <= count; ++n) ASSERT_TRUE(journal.commit(n));
}

// Where the frames of a log file begin; the last entry is where they end.
inline std::vector<uint64_t> frame_offsets(const std::string& content) {
  std::vector<uint64_t> offsets = {32};
  while (const auto header = parse_frame_header(std::string_view(content).substr(offsets.back())))
    offsets.push_back(offsets.back() + frame_bytes(*header));
  return offsets;
}

inline const std::string kFirstLog = "log-00000000000000000001";

// What recovery makes of a directory that holds only this log.
struct Outcome {
  std::optional<World> world;  // nothing: it refused
  std::string error;
  Recovered report;
};
inline Outcome recover_log(const std::string& content, const FileJournalOptions& options = one_segment()) {
  SimulatedDisk disk;
  disk.put(kFirstLog, content);
  DrivenJournal journal(disk, options);
  auto world = journal.recover();
  if (!world) return {std::nullopt, world.error().message, {}};
  return {*world, "", journal.report};
}

}  // namespace turnstile::testing
