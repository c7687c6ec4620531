#include "journal/segment_reader.h"

#include <algorithm>

namespace turnstile {
namespace {

constexpr size_t kReadBytes = 4 << 20;

}  // namespace

Result<std::string_view> SegmentReader::peek(size_t size) {
  const uint64_t skipped = offset_ - window_at_;
  if (skipped + size > window_size_) {
    const uint64_t remaining = std::max(file_size_, offset_) - offset_;
    const size_t wanted = size_t(std::min<uint64_t>(std::max(size, kReadBytes), remaining));
    if (window_.size() < wanted) window_.resize(wanted);
    const auto got = file_.read_at(offset_, std::span(window_).first(wanted));
    if (!got) return std::unexpected(got.error());
    window_at_ = offset_;
    window_size_ = *got;
  }
  const size_t begin = size_t(offset_ - window_at_);
  return std::string_view(window_.data() + begin, std::min(size, window_size_ - begin));
}

Result<std::optional<std::string>> SegmentReader::check_header(FileKind kind, uint64_t first_batch) {
  const auto size = file_.size();
  if (!size) return std::unexpected(size.error());
  file_size_ = *size;
  offset_ = 0;
  const auto bytes = peek(kFileHeaderBytes);
  if (!bytes) return std::unexpected(bytes.error());
  auto fault = fault_in_file_header(*bytes, kind, first_batch);
  offset_ = kFileHeaderBytes;
  return fault;
}

Result<std::optional<Frame>> SegmentReader::next() {
  const auto head = peek(kFrameHeaderBytes);
  if (!head) return std::unexpected(head.error());
  const auto header = parse_frame_header(*head);
  if (!header) return std::nullopt;
  if (offset_ + frame_bytes(*header) > file_size_) return std::nullopt;
  const auto frame = peek(size_t(frame_bytes(*header)));
  if (!frame) return std::unexpected(frame.error());
  if (frame->size() != frame_bytes(*header) || !payload_is_sound(*header, *frame)) return std::nullopt;
  const Frame result{*header, offset_, frame->substr(kFrameHeaderBytes, header->payload)};
  offset_ += frame->size();
  return result;
}

Result<std::string> SegmentReader::rest() {
  std::string bytes(size_t(std::max(file_size_, offset_) - offset_), '\0');
  const auto got = file_.read_at(offset_, bytes);
  if (!got) return std::unexpected(got.error());
  bytes.resize(*got);
  return bytes;
}

}  // namespace turnstile
