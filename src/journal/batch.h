// The frame around the records of a batch: what makes a batch recognisable, checkable, and a torn one
// tell-able from a damaged one. docs/journal-format.md has the same as a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "engine/effects.h"
#include "journal/record_codec.h"

namespace turnstile {

enum class FrameKind : uint32_t { batch = 1, snapshot_part = 2, snapshot_end = 3 };

struct FrameHeader {
  FrameKind kind{};
  uint64_t number = 0;  // of the batch; within a snapshot: of the part, from 1
  Time time{};
  uint32_t payload = 0;  // bytes
  uint32_t records = 0;
  uint64_t payload_checksum = 0;
  uint32_t blank_sectors = 0;  // of the payload, as written; see blank_sectors()
};

inline constexpr size_t kFrameHeaderBytes = 56;
inline constexpr size_t kFrameTrailerBytes = 1;  // an end mark that is never zero
inline constexpr size_t kSectorBytes = 512;      // a disk writes all of a sector or nothing of it
inline constexpr uint32_t kFrameMagic = 0x42537354;

inline uint64_t frame_bytes(const FrameHeader& header) {
  return kFrameHeaderBytes + uint64_t(header.payload) + kFrameTrailerBytes;
}

// Nothing if the header is damaged or incomplete.
std::optional<FrameHeader> parse_frame_header(std::string_view bytes);
// `frame`: all bytes of the frame whose header this is.
bool payload_is_sound(const FrameHeader& header, std::string_view frame);

// In how many of the disk's sectors `bytes`, which begin at `offset` of their file, have at most `most_bits`
// bits set. A frame is written over zeros, so a sector that did not reach the disk is one that has none.
uint32_t blank_sectors(std::string_view bytes, uint64_t offset, int most_bits);

// A batch in the making: records are encoded straight into what will be the frame.
//
// Threads: none of its own. Memory: reused from batch to batch; given back after an unusually large one.
// Invariant: bytes_ begins with room for the header.
class FrameBuilder {
 public:
  FrameBuilder() { clear(); }

  void clear();
  void add(const Record& record);
  void add_total(uint64_t total);  // the payload of a snapshot's end

  // The records, without a frame: for a store that has a form of its own.
  std::string_view payload() const { return std::string_view(bytes_).substr(kFrameHeaderBytes); }
  size_t payload_size() const { return bytes_.size() - kFrameHeaderBytes; }
  size_t frame_size() const { return bytes_.size() + kFrameTrailerBytes; }
  uint32_t records() const { return records_; }

  // The finished frame, for `offset` of its file; valid until the next call. Only clear() may follow.
  std::string_view seal(FrameKind kind, uint64_t number, Time time, uint64_t offset);

 private:
  std::string bytes_;
  WrittenTexts last_texts_;
  uint32_t records_ = 0;
};

}  // namespace turnstile
