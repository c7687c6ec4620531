// What the journal costs: encoding a record, committing batches of several sizes (with and without zeros
// written ahead), and loading a million holds. Files are made under $TMPDIR: point it at the disk in
// question.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "journal/journal.h"
#include "journal/record_codec.h"

namespace turnstile {
namespace {

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "turnstile-bench-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  std::filesystem::path journal() const { return path_ / "journal"; }

 private:
  std::filesystem::path path_;
};

// A hold of an image layer, as a server would record it.
Record hold(std::string_view resource, uint64_t token) {
  Record r;
  r.kind = RecordKind::hold_set;
  r.flags = kFlagMonitor;
  r.attempt = 1;
  r.lane = {OperationName("pull"), ResourceId(resource)};
  r.who = {NodeId("node-17.example"), RequestId("")};
  r.number = token;
  r.since = Time(Duration(1'763'240'000'000'000));
  r.until = Time(Duration(1'763'243'600'000'000));
  r.lease = std::chrono::seconds(30);
  return r;
}
const std::string kDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

void encode(benchmark::State& state) {
  std::string buffer;
  const Record record = hold(kDigest, 123'456);
  for (auto _ : state) {
    if (buffer.size() > 1 << 20) buffer.clear();
    append_record(buffer, record);
    benchmark::DoNotOptimize(buffer.data());
  }
}
BENCHMARK(encode);

void decode(benchmark::State& state) {
  std::string buffer;
  append_record(buffer, hold(kDigest, 123'456));
  Record record;
  for (auto _ : state) {
    std::string_view bytes = buffer;
    benchmark::DoNotOptimize(take_record(bytes, record));
  }
}
BENCHMARK(decode);

// A journal that is appended to and waited for by one thread.
class Commits {
 public:
  explicit Commits(const FileJournalOptions& options) {
    journal_ = std::move(*open_file_journal(directory_.journal(), options));
    if (!journal_->recover([](const Record&) {})) std::abort();
    journal_->start(
        [this](uint64_t sequence) {
          std::lock_guard lock(mutex_);
          durable_ = sequence;
          changed_.notify_one();
        },
        [](const Error& error) { fmt::print(stderr, "{}\n", error.message); });
  }
  ~Commits() { journal_->stop(); }
  void commit(std::span<const Record> records) {
    const uint64_t sequence = journal_->append(records, Time{});
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return durable_ >= sequence; });
  }

 private:
  ScratchDirectory directory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t durable_ = 0;
  std::unique_ptr<Journal> journal_;
};

void commit(benchmark::State& state) {
  FileJournalOptions options;
  options.zero_ahead_bytes = uint64_t(state.range(1)) << 10;
  Commits commits(options);
  const std::vector<Record> records(size_t(state.range(0)), hold(kDigest, 123'456));
  for (auto _ : state) commits.commit(records);
  state.counters["commits/s"] = benchmark::Counter(double(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["records/s"] =
      benchmark::Counter(double(state.iterations() * state.range(0)), benchmark::Counter::kIsRate);
}
BENCHMARK(commit)
    ->ArgNames({"records", "zero_ahead_KiB"})
    ->ArgsProduct({{1, 32, 64, 512}, {0, 1024}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void append(benchmark::State& state) {
  ScratchDirectory directory;
  auto journal = std::move(*open_file_journal(directory.journal(), {}));
  if (!journal->recover([](const Record&) {})) std::abort();
  journal->start([](uint64_t) {}, [](const Error&) {});
  const Record record = hold(kDigest, 123'456);
  for (auto _ : state) {
    while (journal->overloaded()) std::this_thread::yield();
    benchmark::DoNotOptimize(journal->append({&record, 1}, Time{}));
  }
  journal->stop();
}
BENCHMARK(append)->UseRealTime();

// A million holds: in the log, or in a snapshot.
void recover_million(benchmark::State& state) {
  constexpr uint64_t kHolds = 1'000'000;
  ScratchDirectory directory;
  const bool from_snapshot = state.range(0) != 0;
  {
    auto journal = std::move(*open_file_journal(directory.journal(), {}));
    if (!journal->recover([](const Record&) {})) std::abort();
    journal->start([](uint64_t) {}, [](const Error&) {});
    const auto write_all = [&](const Journal::Write& write) {
      for (uint64_t n = 0; n < kHolds; ++n) write(hold(fmt::format("sha256:{:064x}", n), n));
    };
    if (from_snapshot) {
      if (!journal->snapshot(write_all)) std::abort();
    } else {
      write_all([&](const Record& record) {
        while (journal->overloaded()) std::this_thread::yield();
        journal->append({&record, 1}, Time{});
      });
    }
    journal->stop();
  }
  for (auto _ : state) {
    auto journal = std::move(*open_file_journal(directory.journal(), {}));
    uint64_t sum = 0;
    const auto found = journal->recover([&](const Record& record) { sum += record.number; });
    if (!found || found->records != kHolds) std::abort();
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(recover_million)->ArgName("snapshot")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace turnstile
