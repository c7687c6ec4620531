// A journal's directory at the start of a server: several files with any content. What must hold:
// - it is loaded or refused; when it is refused, no file has been changed;
// - what was loaded is loaded again by the next start, in the same order, and there is nothing left to cut;
// - the journal goes on from there: a batch written behind it is what the next start finds in addition.
#include <map>
#include <vector>

#include "journal/recovery.h"
#include "journal/segment_writer.h"
#include "journal/simulated_disk.h"
#include "journal_repair.h"

namespace turnstile::fuzz {
namespace {

using testing::SimulatedDisk;

std::map<std::string, std::string> contents(const SimulatedDisk& disk) {
  std::map<std::string, std::string> files;
  for (const std::string& name : disk.names()) files[name] = disk.content(name);
  return files;
}

// Each file: which, its number, what is not repaired, and the content with its length before it.
void put_files(SimulatedDisk& disk, Input input) {
  for (int i = 0; i < 8 && !input.empty(); ++i) {
    const FileKind kind = input.byte() % 2 == 0 ? FileKind::log : FileKind::snapshot;
    const uint64_t first_batch = input.byte() % 16;
    const uint8_t left_alone = input.byte();
    std::string content(input.text(input.number<uint16_t>() % 2048));
    repair(content, kind, first_batch, left_alone);
    disk.put(left_alone == 255 ? temporary_name(first_batch) : file_name(kind, first_batch),
             std::move(content));
  }
}

struct Loaded {
  Result<LogEnd> end = fail("not tried");
  std::string records;  // all of them, as they would be written
};

Loaded load(Directory& directory) {
  Loaded loaded;
  WrittenTexts last;
  loaded.end = recover_directory(directory,
                                 [&](const Record& record) { append_record(loaded.records, record, last); });
  return loaded;
}

void append_one(Directory& directory, const LogEnd& end, const Record& record) {
  SegmentWriter writer(directory, FileJournalOptions{.zero_ahead_bytes = 0});
  if (end.offset == 0) {
    TS_CHECK(writer.create(end.next_batch).has_value(), "a file can be begun");
  } else {
    auto file = directory.open(file_name(FileKind::log, end.first_batch));
    TS_CHECK(file.has_value(), "the last file is there");
    writer.resume(std::move(*file), end.first_batch, end.next_batch, end.offset);
  }
  FrameBuilder batch;
  batch.add(record);
  TS_CHECK(writer.write(batch, Time{}).has_value(), "a batch can be written");
}

}  // namespace

void run(std::string_view bytes) {
  SimulatedDisk disk;
  put_files(disk, Input(bytes));
  const auto before = contents(disk);
  const auto directory = disk.mount();

  const Loaded first = load(*directory);
  if (!first.end) {
    TS_CHECK(contents(disk) == before, "a directory that is refused is left as it is");
    return;
  }
  TS_CHECK(first.end->report.records <= bytes.size(), "no more records are loaded than there are bytes");
  disk.crash_losing_all_unsynced();
  const Loaded second = load(*directory);
  TS_CHECK(second.end.has_value(), "what was loaded once is loaded again");
  TS_CHECK(second.records == first.records, "what was loaded is on the disk");
  TS_CHECK(second.end->next_batch == first.end->next_batch, "the log goes on at the same batch");
  TS_CHECK(!second.end->report.cut_torn_tail, "what was cut is gone");

  Record added;
  added.kind = RecordKind::token_mark;
  added.number = 123;
  append_one(*directory, *second.end, added);
  disk.crash_losing_all_unsynced();
  const Loaded third = load(*directory);
  TS_CHECK(third.end.has_value() && third.end->next_batch == first.end->next_batch + 1,
           "the log has gone on");
  std::string expected = first.records;
  WrittenTexts last;
  append_record(expected, added, last);
  TS_CHECK(third.records == expected, "what was written behind the log is found");
}

}  // namespace turnstile::fuzz
