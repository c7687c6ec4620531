#include "journal/batch.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/hash.h"
#include "journal/wire.h"

namespace turnstile {
namespace {

// The first and the last byte of a header, and the last of a frame, have several bits set: wherever a sector
// ends, the part of a frame in it is not zero, and no single flipped bit makes it so.
constexpr uint32_t kHeaderEnd = 0xe7d3b5a9;
constexpr char kFrameEnd = char(0xc5);

constexpr size_t kChecksumAt = 44;  // of the header; it covers everything before it
constexpr size_t kHeaderEndAt = 52;

// The length is 32 bits. The server refuses work far below this (most_pending_bytes); to get here is a bug.
constexpr size_t kMostPayload = size_t(2) << 30;
// A buffer that a burst has made larger than this is not kept.
constexpr size_t kKeptCapacity = 8 << 20;

}  // namespace

std::optional<FrameHeader> parse_frame_header(std::string_view bytes) {
  if (bytes.size() < kFrameHeaderBytes) return std::nullopt;
  wire::Reader from(bytes);
  FrameHeader h;
  uint32_t magic = 0, kind = 0, end = 0;
  int64_t time = 0;
  uint64_t checksum = 0;
  from.take_fixed(magic);
  from.take_fixed(kind);
  from.take_fixed(h.number);
  from.take_fixed(time);
  from.take_fixed(h.payload);
  from.take_fixed(h.records);
  from.take_fixed(h.payload_checksum);
  from.take_fixed(h.blank_sectors);
  from.take_fixed(checksum);
  from.take_fixed(end);
  if (magic != kFrameMagic || end != kHeaderEnd) return std::nullopt;
  if (checksum != xxh3_64(bytes.substr(0, kChecksumAt))) return std::nullopt;
  if (kind < uint32_t(FrameKind::batch) || kind > uint32_t(FrameKind::snapshot_end)) return std::nullopt;
  h.kind = FrameKind(kind);
  h.time = Time(Duration(time));
  return h;
}

bool payload_is_sound(const FrameHeader& header, std::string_view frame) {
  TS_CHECK(frame.size() == frame_bytes(header), "a frame is checked as a whole");
  return frame.back() == kFrameEnd &&
         xxh3_64(frame.substr(kFrameHeaderBytes, header.payload)) == header.payload_checksum;
}

uint32_t blank_sectors(std::string_view bytes, uint64_t offset, int most_bits) {
  uint32_t blank = 0;
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(bytes.size(), kSectorBytes - offset % kSectorBytes);
    int bits = 0;
    for (size_t i = 0; i < size && bits <= most_bits; ++i) bits += std::popcount(uint8_t(bytes[i]));
    if (bits <= most_bits) ++blank;
    bytes.remove_prefix(size);
    offset += size;
  }
  return blank;
}

void FrameBuilder::clear() {
  if (bytes_.capacity() > kKeptCapacity && bytes_.size() < bytes_.capacity() / 4) bytes_ = {};
  bytes_.assign(kFrameHeaderBytes, '\0');
  last_texts_ = {};
  records_ = 0;
}

void FrameBuilder::add(const Record& record) {
  append_record(bytes_, record, last_texts_);
  ++records_;
  TS_CHECK(bytes_.size() < kMostPayload, "the pending batch stays far below its limit");
}

void FrameBuilder::add_total(uint64_t total) {
  char bytes[sizeof total];
  wire::put_fixed(bytes, total);
  bytes_.append(bytes, sizeof bytes);
}

std::string_view FrameBuilder::seal(FrameKind kind, uint64_t number, Time time, uint64_t offset) {
  const uint32_t size = uint32_t(payload_size());
  const std::string_view payload = std::string_view(bytes_).substr(kFrameHeaderBytes);
  // Whole sectors of the payload only: those that hold a part of the header or the end mark are never blank.
  // One bit is allowed, so that a sector that a flipped bit makes blank does not look as if it had not been
  // written.
  const uint64_t payload_at = offset + kFrameHeaderBytes;
  const size_t skipped = std::min<size_t>(size, (kSectorBytes - payload_at % kSectorBytes) % kSectorBytes);
  const size_t whole = (size - skipped) / kSectorBytes * kSectorBytes;
  const uint32_t blank = blank_sectors(payload.substr(skipped, whole), payload_at + skipped, 1);

  char* to = bytes_.data();
  to = wire::put_fixed(to, kFrameMagic);
  to = wire::put_fixed(to, uint32_t(kind));
  to = wire::put_fixed(to, number);
  to = wire::put_fixed<int64_t>(to, time.time_since_epoch().count());
  to = wire::put_fixed(to, size);
  to = wire::put_fixed(to, records_);
  to = wire::put_fixed(to, xxh3_64(payload));
  to = wire::put_fixed(to, blank);
  TS_CHECK(to == bytes_.data() + kChecksumAt, "the header's checksum covers all before it");
  to = wire::put_fixed(to, xxh3_64(std::string_view(bytes_).substr(0, kChecksumAt)));
  TS_CHECK(to == bytes_.data() + kHeaderEndAt, "the header ends with its mark");
  wire::put_fixed(to, kHeaderEnd);
  bytes_.push_back(kFrameEnd);
  return bytes_;
}

}  // namespace turnstile
