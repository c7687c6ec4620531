#include "journal/tail.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "journal/batch.h"
#include "journal/wire.h"

namespace turnstile {
namespace {

struct Found {
  size_t at;
  uint64_t number;
};

// A valid batch that is not older than `next_batch`, at or behind `from`.
std::optional<Found> find_batch(std::string_view bytes, size_t from, uint64_t next_batch) {
  char magic[sizeof kFrameMagic];
  wire::put_fixed(magic, kFrameMagic);
  const std::string_view needle(magic, sizeof magic);
  for (size_t at = bytes.find(needle, from); at != bytes.npos; at = bytes.find(needle, at + 1)) {
    const auto header = parse_frame_header(bytes.substr(at));
    if (!header || header->kind != FrameKind::batch || header->number < next_batch) continue;
    if (frame_bytes(*header) > bytes.size() - at) continue;
    if (payload_is_sound(*header, bytes.substr(at, frame_bytes(*header)))) return Found{at, header->number};
  }
  return std::nullopt;
}

Tail judge_header(std::string_view bytes, uint64_t offset) {
  if (bytes.size() < kFrameHeaderBytes) return {TailVerdict::torn, "the file ends within a batch's header"};
  if (blank_sectors(bytes.substr(0, kFrameHeaderBytes), offset, 0) > 0)
    return {TailVerdict::torn, "a part of a batch's header was not written"};
  return {TailVerdict::damaged, "the header of a batch is damaged"};
}

Tail judge_payload(const FrameHeader& header, std::string_view bytes, uint64_t offset) {
  if (bytes.size() < frame_bytes(header))
    return {TailVerdict::torn, fmt::format("the file ends within batch {}", header.number)};
  if (blank_sectors(bytes.substr(0, frame_bytes(header)), offset, 0) > header.blank_sectors)
    return {TailVerdict::torn, fmt::format("a part of batch {} was not written", header.number)};
  return {TailVerdict::damaged,
          fmt::format("the checksum of batch {} is wrong although all of it was written", header.number)};
}

}  // namespace

Tail judge_tail(std::string_view bytes, uint64_t offset, uint64_t next_batch) {
  if (std::ranges::all_of(bytes, [](char byte) { return byte == 0; })) return {TailVerdict::end, "zeros"};
  const auto header = parse_frame_header(bytes);
  // The text of a record may look like a frame, so what a good header covers is not searched.
  const size_t search_from = header ? size_t(std::min<uint64_t>(frame_bytes(*header), bytes.size())) : 0;
  if (const auto found = find_batch(bytes, search_from, next_batch))
    return {TailVerdict::damaged, fmt::format("no valid batch begins here, but batch {} follows at byte {}",
                                              found->number, offset + found->at)};
  return header ? judge_payload(*header, bytes, offset) : judge_header(bytes, offset);
}

}  // namespace turnstile
