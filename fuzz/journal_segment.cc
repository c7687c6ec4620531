// One journal file, and the judgement about where it stops being readable. What must hold:
// - any file is read: its frames follow one another, each inside of the file and with the checksum that it
// says;
// - what is judged to be torn, or the end, has no good batch behind it: nothing that was acknowledged is cut
// off;
// - reading takes no more memory than the file is large.
#include "journal/segment_reader.h"
#include "journal/simulated_disk.h"
#include "journal/tail.h"
#include "journal_repair.h"

namespace turnstile::fuzz {
namespace {

// A file in memory that is only read, and not beyond its end.
class ReadOnlyFile final : public File {
 public:
  explicit ReadOnlyFile(std::string_view bytes) : bytes_(bytes) {}

  Result<size_t> read_at(uint64_t offset, std::span<char> into) override {
    TS_CHECK(into.size() <= bytes_.size(), "nobody makes room for more than there is");
    const std::string_view there = bytes_.substr(std::min<uint64_t>(offset, bytes_.size()), into.size());
    std::ranges::copy(there, into.data());
    return there.size();
  }
  Result<uint64_t> size() override { return bytes_.size(); }
  Result<void> write_at(uint64_t, std::string_view) override { return fail("read-only"); }
  Result<void> truncate(uint64_t) override { return fail("read-only"); }
  Result<void> sync() override { return fail("read-only"); }

 private:
  std::string_view bytes_;
};

// By a plain search at every byte; a frame inside of the one at `from`, if that has a good header, is its
// content.
bool has_good_batch(std::string_view rest, uint64_t next_batch) {
  size_t at = 0;
  if (const auto header = parse_frame_header(rest))
    at = size_t(std::min<uint64_t>(frame_bytes(*header), rest.size()));
  for (; at + kFrameHeaderBytes < rest.size(); ++at) {
    const auto header = parse_frame_header(rest.substr(at));
    if (!header || header->kind != FrameKind::batch || header->number < next_batch) continue;
    if (frame_bytes(*header) > rest.size() - at) continue;
    if (payload_is_sound(*header, rest.substr(at, frame_bytes(*header)))) return true;
  }
  return false;
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const FileKind kind = input.byte() % 2 == 0 ? FileKind::log : FileKind::snapshot;
  const uint8_t left_alone = input.byte();
  const uint64_t first_batch = 1 + input.byte() % 4;
  std::string content(input.rest());
  repair(content, kind, first_batch, left_alone);

  ReadOnlyFile file(content);
  SegmentReader reader(file);
  const auto fault = reader.check_header(kind, first_batch);
  TS_CHECK(fault.has_value(), "a file in memory can be read");
  if (*fault) return;
  uint64_t next_batch = first_batch;
  for (uint64_t at = kFileHeaderBytes;;) {
    const auto frame = reader.next();
    TS_CHECK(frame.has_value(), "a file in memory can be read");
    if (!*frame) break;
    TS_CHECK((*frame)->offset == at, "frames follow one another");
    TS_CHECK((*frame)->payload.size() == (*frame)->header.payload, "a frame has all of its payload");
    TS_CHECK(xxh3_64((*frame)->payload) == (*frame)->header.payload_checksum,
             "a frame has the checksum that it says");
    at += frame_bytes((*frame)->header);
    TS_CHECK(reader.offset() == at && at <= content.size(), "a frame lies inside of its file");
    next_batch = (*frame)->header.number + 1;
  }
  const auto rest = reader.rest();
  TS_CHECK(rest && rest->size() == content.size() - reader.offset(), "all of the rest is judged");
  const Tail tail = judge_tail(*rest, reader.offset(), next_batch);
  if (tail.verdict != TailVerdict::damaged)
    TS_CHECK(!has_good_batch(*rest, next_batch), "nothing good is cut off");
}

}  // namespace turnstile::fuzz
