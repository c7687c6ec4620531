// What the journal costs: encoding a record, committing batches of several sizes (with and without zeros
// written ahead), and loading a million holds. Files are made under $TMPDIR: point it at the disk in
// question.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "journal/journal.h"
#include "journal/record_codec.h"
#include "journal/segment_writer.h"

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
  WrittenTexts last;
  const Record record = hold(kDigest, 123'456);
  for (auto _ : state) {
    if (buffer.size() > 1 << 20) buffer.clear();
    append_record(buffer, record, last);
    benchmark::DoNotOptimize(buffer.data());
  }
}
BENCHMARK(encode);

void decode(benchmark::State& state) {
  std::string buffer;
  WrittenTexts last;
  append_record(buffer, hold(kDigest, 123'456), last);
  Record record;
  for (auto _ : state) {
    std::string_view bytes = buffer;
    ReadTexts last_texts;
    benchmark::DoNotOptimize(take_record(bytes, record, last_texts));
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

// Percentiles besides the mean: on a machine that others use, the mean is mostly the scheduler's.
class Latencies {
 public:
  template <class Call>
  void time(const Call& call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    all_.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  void report(benchmark::State& state) {
    std::ranges::sort(all_);
    for (const auto& [name, part] : {std::pair("p10_us", 0.1), {"p50_us", 0.5}, {"p99_us", 0.99}})
      state.counters[name] = all_[size_t(part * double(all_.size() - 1))];
    state.counters["records/s"] =
        benchmark::Counter(double(state.iterations() * state.range(0)), benchmark::Counter::kIsRate);
  }

 private:
  std::vector<double> all_;
};

FileJournalOptions with_zero_ahead(int64_t kibibytes) {
  FileJournalOptions options;
  options.zero_ahead_bytes = uint64_t(kibibytes) << 10;
  return options;
}

// Through the whole journal: append, be written by its thread, be told.
void commit(benchmark::State& state) {
  Commits commits(with_zero_ahead(state.range(1)));
  const std::vector<Record> records(size_t(state.range(0)), hold(kDigest, 123'456));
  Latencies latencies;
  for (auto _ : state) latencies.time([&] { commits.commit(records); });
  latencies.report(state);
}
BENCHMARK(commit)
    ->ArgNames({"records", "zero_ahead_KiB"})
    ->ArgsProduct({{1, 32, 512}, {0, 1024}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// Write and sync only, on one thread: what docs/decisions/0010-journal-zero-ahead.md rests on.
void write_batch(benchmark::State& state) {
  ScratchDirectory scratch;
  const auto directory = std::move(*open_directory(scratch.journal()));
  SegmentWriter writer(*directory, with_zero_ahead(state.range(1)));
  if (!writer.create(1)) std::abort();
  FrameBuilder batch;
  Latencies latencies;
  for (auto _ : state) {
    batch.clear();
    for (int64_t i = 0; i < state.range(0); ++i) batch.add(hold(kDigest, 123'456));
    latencies.time([&] {
      if (!writer.write(batch, Time{})) std::abort();
    });
  }
  latencies.report(state);
}
BENCHMARK(write_batch)
    ->ArgNames({"records", "zero_ahead_KiB"})
    ->ArgsProduct({{1, 64, 512}, {0, 1024}})
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
