// The replicated store's keys in etcd, and what their values look like (docs/replication.md has the same as
// tables).
//
// A batch is one key of the log, or several that follow each other, if it is large; a snapshot is some chunks
// and the pointer that makes them count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "etcd/etcd.h"

namespace turnstile {

inline constexpr std::string_view kEtcdFormat = "turnstile 1";  // the value of EtcdKeys::format()
// ... until all that copy-store copies is there.
inline constexpr std::string_view kEtcdCopying = "turnstile copying";

// The names of the keys below one prefix.
class EtcdKeys {
 public:
  explicit EtcdKeys(std::string prefix) : prefix_(std::move(prefix)) {}

  const std::string& prefix() const { return prefix_; }
  std::string format() const { return prefix_ + "/format"; }
  std::string leader() const { return prefix_ + "/leader"; }
  std::string log(uint64_t number) const;
  std::string log_end() const { return prefix_ + "/log0"; }  // '0' comes behind '/'
  // Of this key; nothing: it is none of the log's.
  std::optional<uint64_t> number_of(std::string_view log_key) const;
  // A generation is named by the term that wrote it and the first number behind it, so that a later one sorts
  // behind all before it, and all of them before `current`.
  std::string snapshots() const { return prefix_ + "/snap/"; }
  std::string generation(etcd::Revision term, uint64_t first_number) const;
  std::string chunk(const std::string& generation, uint64_t index) const;
  std::string current() const { return prefix_ + "/snap/current"; }
  std::string servers() const { return prefix_ + "/servers/"; }
  std::string server(std::string_view name) const { return servers() + std::string(name); }

 private:
  std::string prefix_;
};

// One key of the log: a part of a batch, nearly always all of it.
struct LogPart {
  etcd::Revision term = 0;
  uint64_t number = 0;  // the key's
  Time time{};
  uint32_t part = 0, parts = 1;
  uint32_t records = 0;  // of the whole batch
  std::string_view payload;
};
std::string encode(const LogPart& part);
// The views are into `value`. Nothing: it is damaged, or of another format.
std::optional<LogPart> decode_log_part(std::string_view value);

// One chunk of a snapshot: records, as in a batch.
struct SnapshotChunk {
  uint64_t index = 0;
  uint32_t records = 0;
  std::string_view payload;
};
std::string encode(const SnapshotChunk& chunk);
std::optional<SnapshotChunk> decode_snapshot_chunk(std::string_view value);

// What `current` says.
struct SnapshotPointer {
  std::string generation;
  uint64_t first_number = 1;  // the log must be replayed from here on
  uint64_t chunks = 0, records = 0, bytes = 0;
  Time time{};  // not before any that the log had until then
};
std::string encode(const SnapshotPointer& pointer);
std::optional<SnapshotPointer> decode_snapshot_pointer(std::string_view value);

}  // namespace turnstile
