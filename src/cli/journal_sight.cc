#include "cli/journal_sight.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <filesystem>

#include "base/rfc3339.h"
#include "base/utf8.h"
#include "base/version.h"
#include "cli/journal_facts.h"
#include "journal/backup.h"
#include "journal/inspection.h"
#include "journal/layout.h"

namespace turnstile::cli {
namespace {

// What may not be looked at is taken for a file: to open it says why.
bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

Result<Inspection> inspect(const std::string& path) {
  return is_directory(path) ? inspect_directory(path) : inspect_backup(path);
}

std::string rfc3339(Time time) {
  std::string out;
  append_rfc3339(out, time);
  return out;
}

struct FlagName {
  uint8_t flag;
  const char* name;
};
constexpr std::array kFlags = {
    FlagName{kFlagResourceScope, "resource_scope"},
    FlagName{kFlagMonitor, "monitor"},
    FlagName{kFlagUnclaimed, "unclaimed"},
    FlagName{kFlagDereference, "dereference"},
    FlagName{kFlagBonded, "bonded"},
    FlagName{kFlagSuccess, "success"},
    FlagName{kFlagPermanent, "permanent"},
    FlagName{kFlagProgress, "progress"},
};

// Only fields that are not empty, under the API's names where it has them.
boost::json::object to_json(const Record& record) {
  boost::json::object out{{"kind", name_of(record.kind)}};
  const auto text = [&](const char* name, std::string_view value) {
    if (!value.empty()) out[name] = value;
  };
  const auto number = [&](const char* name, uint64_t value) {
    if (value != 0) out[name] = value;
  };
  const auto time = [&](const char* name, Time value) {
    if (value == kNever)
      out[name] = "never";
    else if (value != Time{})
      out[name] = rfc3339(value);
  };
  text("type", record.lane.operation.text);
  text("resource_id", record.lane.resource.text);
  text("node_id", record.who.node.text);
  text("request_id", record.who.request.text);
  number("number", record.number);
  number("attempt", record.attempt);
  time("since", record.since);
  time("until", record.until);
  number("lease_ms", uint64_t(to_ms(record.lease)));
  number("done", record.progress.done);
  number("total", record.progress.total);
  text("info", record.text);
  text("error", record.error);
  text("result", record.result);
  boost::json::array flags;
  for (const FlagName& each : kFlags)
    if ((record.flags & each.flag) != 0) flags.emplace_back(each.name);
  if (!flags.empty()) out["flags"] = std::move(flags);
  return out;
}

uint64_t last_life(const Inspection& inspection) {
  uint64_t life = 0;
  (void)replay_directory(*inspection.directory, [&](const Record& record) {
    if (record.kind == RecordKind::life_mark) life = std::max(life, record.number);
  });
  return life;
}

BackupSight sight_of(const BackupInfo& info) {
  return {.next_batch = info.next_batch, .records = info.records, .bytes = info.bytes, .latest = info.latest};
}

// The error of reading one file by itself.
std::string fault_of(Directory& directory, FileKind kind, uint64_t first) {
  if (kind == FileKind::snapshot) {
    const auto checked = check_snapshot(directory, first);
    return checked ? "" : checked.error().message;
  }
  const std::string name = file_name(kind, first);
  const auto file = directory.open(name);
  if (!file) return file.error().message;
  SegmentReader reader(**file);
  const auto fault = reader.check_header(kind, first);
  if (!fault) return fault.error().message;
  if (*fault) return fmt::format("journal file {} at byte 0: {}.", directory.path_of(name), **fault);
  uint64_t next = first;
  for (;;) {
    const auto frame = reader.next();
    if (!frame) return frame.error().message;
    if (!*frame) break;
    if ((*frame)->header.number != next)
      return fmt::format("journal file {} at byte {}: batch {} is here although {} is next.",
                         directory.path_of(name), (*frame)->offset, (*frame)->header.number, next);
    ++next;
  }
  const auto rest = reader.rest();
  if (!rest) return rest.error().message;
  const Tail tail = judge_tail(*rest, reader.offset(), next);
  if (tail.verdict != TailVerdict::damaged) return "";  // whether torn is harm only the last file shows
  return fmt::format("journal file {} at byte {}: {}.", directory.path_of(name), reader.offset(), tail.why);
}

}  // namespace

Result<JournalSight> look_at_journal(const std::string& path) {
  auto inspection = inspect(path);
  if (!inspection) return std::unexpected(inspection.error());
  JournalFacts facts;
  const uint64_t end = inspection->replayed.next_batch;
  uint64_t batch = 0;
  // Read once more to count: what a server writes meanwhile is not looked at, and no fault of anybody's.
  (void)replay_directory(
      *inspection->directory,
      [&](const Record& record) {
        if (batch < end) facts.apply(record);
      },
      [&](const std::string&, const Frame& frame) {
        batch = frame.header.kind == FrameKind::batch ? frame.header.number : 0;
      });
  const Replayed& read = inspection->replayed;
  JournalSight sight;
  sight.is_backup = !is_directory(path);
  for (const ReplayedFile& file : read.files)
    sight.files.push_back({file_name(file.kind, file.first_batch), file.bytes, file.records});
  sight.first_batch = read.base;
  sight.next_batch = read.next_batch;
  sight.records = read.report.records;
  sight.snapshot_records = read.report.snapshot_records;
  sight.latest = read.report.latest;
  sight.torn = read.tail.verdict == TailVerdict::torn;
  if (sight.torn)
    sight.torn_what = fmt::format("{} at byte {}: {}",
                                  inspection->directory->path_of(file_name(FileKind::log, read.first_batch)),
                                  read.offset, read.tail.why);
  for (const Error& damaged : read.damaged_snapshots) sight.damaged_snapshots.push_back(damaged.message);
  sight.facts = facts.counts();
  sight.records_by_kind = facts.by_kind();
  return sight;
}

Result<void> dump_journal(const std::string& path, const std::function<void(const std::string&)>& line) {
  auto inspection = inspect(path);
  if (!inspection) return std::unexpected(inspection.error());
  const uint64_t end = inspection->replayed.next_batch;
  boost::json::object place;
  bool wanted = true;
  (void)replay_directory(
      *inspection->directory,
      [&](const Record& record) {
        if (!wanted) return;
        boost::json::object out = place;
        for (auto& field : to_json(record)) out.emplace(field.key(), std::move(field.value()));
        line(to_utf8(boost::json::serialize(out)));
      },
      [&](const std::string& name, const Frame& frame) {
        const bool is_batch = frame.header.kind == FrameKind::batch;
        wanted = !is_batch || frame.header.number < end;
        place = {{"file", name}, {"at", frame.offset}};
        if (is_batch) place["batch"] = frame.header.number;
        place["time"] = rfc3339(frame.header.time);
      });
  return {};
}

Result<std::vector<FileVerdict>> verify_journal(const std::string& path) {
  auto chain = inspect(path);
  if (chain && !is_directory(path)) return std::vector<FileVerdict>{{path, ""}};
  if (!is_directory(path)) return std::unexpected(chain.error());
  // With a journal that cannot be read as a whole, each file says for itself what is wrong with it.
  std::unique_ptr<Directory> directory;
  if (chain) {
    directory = std::move(chain->directory);
  } else {
    auto seen = see_directory(path);
    if (!seen) return std::unexpected(seen.error());
    directory = *std::move(seen);
  }
  std::vector<FileVerdict> verdicts;
  bool damaged = false;
  const Listing names = sort_names(*directory->list());
  for (const FileKind kind : {FileKind::snapshot, FileKind::log}) {
    for (const uint64_t first : kind == FileKind::log ? names.logs : names.snapshots) {
      verdicts.push_back({file_name(kind, first), fault_of(*directory, kind, first)});
      damaged = damaged || !verdicts.back().fault.empty();
    }
  }
  // Files that are all sound, and yet do not fit together: one is missing.
  if (!chain && !damaged) verdicts.push_back({path, chain.error().message});
  return verdicts;
}

Result<BackupSight> back_up(const std::string& directory, uint64_t life, const std::string& file) {
  const auto inspection = inspect_directory(directory);
  if (!inspection) return std::unexpected(inspection.error());
  if (life != 0 && life != last_life(*inspection))
    return fail(fmt::format(
        "{} is not the journal of that server, only a directory of the same name: take the backup on "
        "the server's machine",
        directory));
  const Time now = std::chrono::floor<Duration>(std::chrono::system_clock::now());
  const auto info = write_backup(*inspection, file, fmt::format("turnstile {}", kVersion), now);
  if (!info) return std::unexpected(info.error());
  return sight_of(*info);
}

Result<BackupSight> restore(const std::string& file, const std::string& directory) {
  const auto info = restore_backup(file, directory);
  if (!info) return std::unexpected(info.error());
  return sight_of(*info);
}

}  // namespace turnstile::cli
