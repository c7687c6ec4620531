// Reading a journal file from its beginning, frame by frame, in large reads.
//
// Reads rather than a mapping: a bad sector is then an error that names the file and the byte, not a SIGBUS.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "journal/batch.h"
#include "journal/file.h"
#include "journal/layout.h"

namespace turnstile {

struct Frame {
  FrameHeader header;
  uint64_t offset = 0;  // in its file
  std::string_view payload;
};

// Hands out good frames in order and stops before the first that is not.
//
// Not its job: judging why it stopped (tail.h), or the order of batch numbers.
// Threads: none of its own. Views of a frame live until the next call.
class SegmentReader {
 public:
  explicit SegmentReader(File& file) : file_(file) {}

  // What is wrong with the file's header, or nothing. Call it first; it moves to the first frame.
  Result<std::optional<std::string>> check_header(FileKind kind, uint64_t first_batch);

  // Nothing: there is no good frame at offset().
  Result<std::optional<Frame>> next();
  uint64_t offset() const { return offset_; }

  // Everything from offset() to the end of the file.
  Result<std::string> rest();

 private:
  // At most `size` bytes at offset(); fewer at the end of the file.
  Result<std::string_view> peek(size_t size);

  File& file_;
  uint64_t file_size_ = 0;
  uint64_t offset_ = 0;
  std::vector<char> window_;
  uint64_t window_at_ = 0;
  size_t window_size_ = 0;
};

}  // namespace turnstile
