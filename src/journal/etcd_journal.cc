// Puts group commit, guarded writes and snapshots in chunks together.
#include "journal/etcd_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/plant.h"
#include "journal/etcd_writer.h"
#include "journal/group_commit.h"

namespace turnstile {
namespace {

constexpr uint64_t kLogToSnapshot = 2;  // as the file journal has it

// The log's end in etcd. Threads: the commit thread's only, but for the two counts.
class EtcdLog final : public BatchStore {
 public:
  EtcdLog(const EtcdKeys& keys, EtcdWriter& writer, const EtcdJournalOptions& options,
          EtcdStatistics& statistics)
      : keys_(keys), writer_(writer), options_(options), statistics_(statistics) {}

  void resume(uint64_t next_number, uint64_t keys, uint64_t bytes) {
    next_number_ = next_number;
    statistics_.set_next_number(next_number_);
    keys_written_ = keys;
    bytes_written_ = bytes;
  }
  Result<void> write(FrameBuilder& batch, Time time) override;

  uint64_t next_number() const { return next_number_; }
  uint64_t keys_written() const { return keys_written_.load(std::memory_order_relaxed); }
  uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }

 private:
  Result<void> commit(etcd::Transaction transaction);

  const EtcdKeys& keys_;
  EtcdWriter& writer_;
  const EtcdJournalOptions& options_;
  EtcdStatistics& statistics_;
  uint64_t next_number_ = 1;
  std::atomic<uint64_t> keys_written_{0}, bytes_written_{0};
};

// One transaction, as nearly always; a batch that is too large for one counts only with its last key.
Result<void> EtcdLog::write(FrameBuilder& batch, Time time) {
  const std::string_view payload = batch.payload();
  if (batch.records() == 0) return commit({});
  LogPart part;
  part.term = writer_.term();
  part.time = time;
  part.records = batch.records();
  part.parts = uint32_t((payload.size() + options_.key_bytes - 1) / options_.key_bytes);
  etcd::Transaction transaction;
  size_t bytes = 0, written = 0;
  for (; part.part < part.parts; ++part.part) {
    part.number = next_number_ + part.part;
    part.payload = payload.substr(part.part * options_.key_bytes, options_.key_bytes);
    if (bytes + part.payload.size() > options_.transaction_bytes ||
        transaction.puts.size() >= options_.transaction_keys) {
      if (Result<void> done = commit(std::exchange(transaction, {})); !done) return done;
      bytes = 0;
    }
    transaction.puts.push_back({keys_.log(part.number), encode(part), etcd::LeaseId::none});
    bytes += part.payload.size();
    written += transaction.puts.back().value.size();
  }
  if (Result<void> done = commit(std::move(transaction)); !done) return done;
  next_number_ += part.parts;
  statistics_.set_next_number(next_number_);
  keys_written_.fetch_add(part.parts, std::memory_order_relaxed);
  bytes_written_.fetch_add(written, std::memory_order_relaxed);
  return {};
}

Result<void> EtcdLog::commit(etcd::Transaction transaction) {
  const Result<etcd::Revision> done = writer_.commit(std::move(transaction));
  if (!done) return std::unexpected(done.error());
  return {};
}

// Threads: as for Journal.
class EtcdJournal final : public Journal {
 public:
  EtcdJournal(etcd::Client& client, EtcdKeys keys, EtcdTerm term, std::unique_ptr<EtcdImage> image,
              const EtcdJournalOptions& options, const EtcdTiming& timing, EtcdStatistics& statistics,
              GroupCommit::Drive drive)
      : options_(options),
        client_(client),
        keys_(std::move(keys)),
        image_(std::move(image)),
        writer_(client, keys_, std::move(term), timing, statistics, options.call_timeout),
        log_(keys_, writer_, options_, statistics),
        statistics_(statistics),
        commit_(log_, options.most_pending_bytes, drive, options.full_batch_bytes) {}

  bool turn() { return commit_.turn(); }

  Result<Recovered> recover(const Load& load) override;
  void start(std::function<void(uint64_t)> on_durable, std::function<void(Error)> on_failed) override {
    commit_.start(latest_, std::move(on_durable), std::move(on_failed));
  }
  uint64_t append(std::span<const Record> records, Time now, uint64_t last_event) override {
    return commit_.append(records, now, last_event);
  }
  uint64_t durable() const override { return commit_.durable(); }
  bool guards_reads() const override { return !planted(Plant::renewal_by_deposed_leader); }
  uint64_t barrier() override { return commit_.barrier(); }
  const std::function<bool()>* is_over() const override { return &writer_.is_over(); }
  bool keeps_records() const override { return true; }
  // A full etcd takes nothing: who asks is told at once, and need not find out by waiting.
  bool overloaded() const override { return commit_.overloaded() || statistics_.no_space(); }
  Result<void> snapshot(const Dump& dump, std::stop_token stop) override;
  bool wants_snapshot() const override;
  JournalFigures figures() const override {
    const uint64_t before = bytes_before_snapshot_;
    return {.log_bytes = log_.bytes_written() - before,
            .snapshot_bytes = snapshot_bytes_,
            .snapshot_time = snapshot_time_.load()};
  }
  void stop() override { commit_.stop(); }

 private:
  struct Mark {  // how long the log was
    uint64_t keys = 0, bytes = 0;
  };
  Mark log_now() const { return {log_.keys_written(), log_.bytes_written()}; }
  Result<void> erase_behind(uint64_t next_number, const etcd::Guard& first);
  Result<SnapshotPointer> write_snapshot(const Dump& dump, const std::stop_token& stop);
  void erase_unfinished(const std::string& next_generation);
  Result<etcd::Revision> write_chunk(FrameBuilder& chunk, SnapshotPointer& pointer);
  Result<etcd::Revision> flip(const SnapshotPointer& pointer, etcd::Revision first_chunk_created);
  void compact(etcd::Revision before);
  Result<etcd::Revision> when_created(const std::string& key, etcd::Revision not_before);
  void remember(const Mark& begun, uint64_t snapshot_bytes);

  const EtcdJournalOptions options_;
  etcd::Client& client_;
  const EtcdKeys keys_;
  std::unique_ptr<EtcdImage> image_;  // until it is recovered
  EtcdWriter writer_;
  EtcdLog log_;
  EtcdStatistics& statistics_;
  Time latest_{};
  std::string generation_;  // of the snapshot that counts; snapshot()'s own
  // When the last one was begun, which may have failed; and of the one that counts.
  std::atomic<uint64_t> keys_at_snapshot_{0}, bytes_at_snapshot_{0};
  std::atomic<uint64_t> bytes_before_snapshot_{0}, snapshot_bytes_{0};
  std::atomic<Time> snapshot_time_{Time{}};
  std::atomic<bool> in_snapshot_{false};
  GroupCommit commit_;  // last, so that its thread ends first
};

Result<Recovered> EtcdJournal::recover(const Load& load) {
  TS_CHECK(image_ != nullptr, "a journal is recovered once");
  const Result<EtcdImage::End> end = image_->load(load);
  if (!end) return std::unexpected(end.error());
  image_.reset();
  if (!end->more.key.empty() && !planted(Plant::gap_kept)) {
    if (Result<void> done = erase_behind(end->next_number, end->more); !done)
      return std::unexpected(done.error());
    log_warning("an incomplete end of the log in etcd was erased; nobody had been answered",
                {{"key", keys_.log(end->next_number)}});
  }
  log_.resume(end->next_number, end->log_keys, end->log_bytes);
  snapshot_bytes_ = end->snapshot_bytes;
  snapshot_time_ = end->snapshot_time;
  generation_ = end->generation;
  latest_ = end->report.latest;
  return end->report;
}

// Only while the first of it is there: a copy of this that is carried out late must not take what this term
// has written since (docs/decisions/0026-several-servers-on-etcd.md). So a second try is refused when the
// first was carried out, and nobody knew: it was, if that key has gone and the term goes on, in which nobody
// else erases anything.
Result<void> EtcdJournal::erase_behind(uint64_t next_number, const etcd::Guard& first) {
  etcd::Transaction transaction;
  transaction.guards.push_back(first);
  transaction.erases.push_back({keys_.log(next_number), keys_.log_end()});
  const Result<etcd::Revision> done = writer_.commit(std::move(transaction));
  if (done) return {};
  etcd::RangeRequest request;
  request.begin = first.key;
  request.keys_only = true;
  const Result<etcd::RangeAnswer> found = writer_.read(request, writer_.term());
  if (found && found->values.empty() && writer_.commit({})) return {};
  return std::unexpected(done.error());
}

bool EtcdJournal::wants_snapshot() const {
  const uint64_t bytes = log_.bytes_written() - bytes_at_snapshot_.load();
  const uint64_t keys = log_.keys_written() - keys_at_snapshot_.load();
  if (keys >= options_.snapshot_at_keys) return true;
  if (bytes < kLogToSnapshot * snapshot_bytes_.load()) return false;
  return keys >= options_.snapshot_after_keys || bytes >= options_.snapshot_after_bytes;
}

void EtcdJournal::remember(const Mark& begun, uint64_t snapshot_bytes) {
  keys_at_snapshot_ = begun.keys;
  bytes_at_snapshot_ = begun.bytes;
  snapshot_bytes_ = snapshot_bytes;
}

Result<void> EtcdJournal::snapshot(const Dump& dump, std::stop_token stop) {
  if (in_snapshot_.exchange(true)) return fail("a snapshot is already being taken");
  const Mark begun = log_now();
  const Result<SnapshotPointer> pointer = write_snapshot(dump, stop);
  // After an error, too: another attempt is due when the log has grown as much again.
  remember(begun, pointer ? pointer->bytes : snapshot_bytes_.load());
  in_snapshot_ = false;
  if (!pointer) return std::unexpected(pointer.error());
  bytes_before_snapshot_ = begun.bytes;
  snapshot_time_ = pointer->time;
  return {};
}

Result<SnapshotPointer> EtcdJournal::write_snapshot(const Dump& dump, const std::stop_token& stop) {
  SnapshotPointer pointer;
  auto begun = commit_.between_batches([&]() -> Result<void> {
    pointer.first_number = log_.next_number();
    return {};
  });
  if (!begun) return std::unexpected(begun.error());
  pointer.generation = keys_.generation(writer_.term(), pointer.first_number);
  pointer.time = commit_.latest_time();
  erase_unfinished(pointer.generation);
  FrameBuilder chunk;
  Result<etcd::Revision> written = writer_.term();
  dump([&](const Record& record) {
    if (stop.stop_requested() || !written) return;
    chunk.add(record);
    if (chunk.payload_size() >= options_.chunk_bytes) written = write_chunk(chunk, pointer);
  });
  if (stop.stop_requested()) return fail("the server stops");
  if (written && (chunk.records() > 0 || pointer.chunks == 0)) written = write_chunk(chunk, pointer);
  if (!written) return std::unexpected(written.error());
  const Result<etcd::Revision> created = when_created(keys_.chunk(pointer.generation, 0), *written);
  if (!created) return std::unexpected(created.error());
  // The dump may have seen steps that are not safe yet: the snapshot counts when they are.
  etcd::Revision counts_since = 0;
  auto flipped = commit_.between_batches([&]() -> Result<void> {
    const Result<etcd::Revision> done = flip(pointer, *created);
    if (!done) return std::unexpected(done.error());
    counts_since = *done;
    return {};
  });
  if (!flipped) return std::unexpected(flipped.error());
  generation_ = pointer.generation;
  compact(counts_since);
  return pointer;
}

// Chunks that no snapshot has become, because its term or its server ended: the next good one would erase
// them, too, but needs the room before that. Once, and if it does not succeed the next one will: nothing
// depends on it. A copy that is carried out late finds nothing that was begun later than this.
void EtcdJournal::erase_unfinished(const std::string& next_generation) {
  etcd::RangeRequest request;
  request.begin = keys_.snapshots();
  request.end = keys_.snapshots() + next_generation;
  request.keys_only = true;
  const std::string counts = keys_.snapshots() + generation_ + "/";
  const auto found = client_.range(request, options_.call_timeout);
  if (!found || std::ranges::all_of(found->values, [&](const etcd::KeyValue& each) {
        return !generation_.empty() && each.key.starts_with(counts);
      }))
    return;
  etcd::Transaction transaction;
  transaction.guards.push_back({keys_.leader(), writer_.term()});
  if (generation_.empty() || generation_ == next_generation) {
    transaction.erases.push_back({request.begin, request.end});
  } else {
    transaction.erases.push_back({request.begin, counts});
    transaction.erases.push_back({keys_.snapshots() + generation_ + "0", request.end});  // behind its "/"
  }
  const auto erased = client_.commit(transaction, options_.call_timeout);
  if (!erased || !erased->done) return;
  log_info("chunks of a snapshot that was not finished were erased");
  compact(erased->revision);
}

Result<etcd::Revision> EtcdJournal::write_chunk(FrameBuilder& chunk, SnapshotPointer& pointer) {
  etcd::Transaction transaction;
  transaction.puts.push_back({keys_.chunk(pointer.generation, pointer.chunks),
                              encode({pointer.chunks, chunk.records(), chunk.payload()}),
                              etcd::LeaseId::none});
  ++pointer.chunks;
  pointer.records += chunk.records();
  pointer.bytes += chunk.payload_size();
  chunk.clear();
  return writer_.commit(std::move(transaction));
}

Result<etcd::Revision> EtcdJournal::when_created(const std::string& key, etcd::Revision not_before) {
  etcd::RangeRequest request;
  request.begin = key;
  request.keys_only = true;
  const Result<etcd::RangeAnswer> found = writer_.read(request, not_before);
  if (!found) return std::unexpected(found.error());
  if (found->values.empty()) return fail(fmt::format("{} is not there any more", key));
  return found->values.front().create_revision;
}

// Guarded by its first chunk, too: a copy of this that is carried out late, after the next snapshot has
// erased that, must not make this one count again.
//
// The log before the snapshot and the snapshots before it go in the same moment in which it begins to count.
Result<etcd::Revision> EtcdJournal::flip(const SnapshotPointer& pointer, etcd::Revision first_chunk_created) {
  etcd::Transaction transaction;
  transaction.guards.push_back({keys_.chunk(pointer.generation, 0), first_chunk_created});
  transaction.erases.push_back({keys_.log(0), keys_.log(pointer.first_number)});
  transaction.erases.push_back({keys_.snapshots(), keys_.snapshots() + pointer.generation + "/"});
  transaction.puts.push_back({keys_.current(), encode(pointer), etcd::LeaseId::none});
  return writer_.commit(std::move(transaction));
}

// etcd may forget how it all was before: without that its database would grow for ever. Not between two
// batches, which would wait for it.
void EtcdJournal::compact(etcd::Revision before) {
  const auto compacted = client_.compact(before, options_.call_timeout);
  if (!compacted && compacted.error().failure != etcd::Failure::compacted)
    log_info("etcd was not compacted", {{"error", compacted.error().message}});
}

}  // namespace

void EtcdStatistics::count_commit(Duration took) {
  commits_.fetch_add(1, std::memory_order_relaxed);
  const Locked lock(mutex_);
  latest_[samples_++ % kRemembered] = took;
}

void EtcdStatistics::count_error(const etcd::CallError& error) {
  errors_.fetch_add(1, std::memory_order_relaxed);
  const Locked lock(mutex_);
  last_error_ = error.message;
}

double EtcdStatistics::median_commit_ms() const {
  std::vector<Duration> sorted;
  {
    const Locked lock(mutex_);
    sorted.assign(latest_, latest_ + std::min(samples_, kRemembered));
  }
  if (sorted.empty()) return 0;
  std::ranges::nth_element(sorted, sorted.begin() + ptrdiff_t(sorted.size() / 2));
  return std::chrono::duration<double, std::milli>(sorted[sorted.size() / 2]).count();
}

std::string EtcdStatistics::last_error() const {
  const Locked lock(mutex_);
  return last_error_;
}

EtcdTiming EtcdTiming::of_machine() {
  return {machine_time(), [](Duration time) { std::this_thread::sleep_for(time); }};
}

std::unique_ptr<Journal> make_etcd_journal(etcd::Client& client, EtcdKeys keys, EtcdTerm term,
                                           std::unique_ptr<EtcdImage> image,
                                           const EtcdJournalOptions& options, const EtcdTiming& timing,
                                           EtcdStatistics& statistics, std::function<bool()>* by_hand) {
  using Drive = GroupCommit::Drive;
  auto journal = std::make_unique<EtcdJournal>(client, std::move(keys), std::move(term), std::move(image),
                                               options, timing, statistics,
                                               by_hand != nullptr ? Drive::by_hand : Drive::by_thread);
  if (by_hand != nullptr) *by_hand = [made = journal.get()] { return made->turn(); };
  return journal;
}

}  // namespace turnstile
