#include "http/chunked.h"

#include <algorithm>
#include <cstring>

namespace turnstile::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_text(char c) { return (c >= ' ' && c != 0x7F) || c == '\t' || (c & 0x80) != 0; }

}  // namespace

ChunkedBody::Result ChunkedBody::decode(char* body, size_t size, size_t limit) {
  for (;;) {
    size_t length = 0;
    Result result = Result::complete;
    switch (part_) {
      case Part::size_line:
        result = take_line(body, size, length);
        if (result == Result::complete) result = take_size(body + taken_, length, limit);
        if (result == Result::complete) taken_ += length + 2;
        break;
      case Part::content:
        result = take_content(body, size);
        break;
      case Part::content_end:
        if (size > taken_ && body[taken_] != '\r') return Result::malformed;
        if (size - taken_ < 2) return Result::incomplete;
        if (body[taken_ + 1] != '\n') return Result::malformed;
        taken_ += 2;
        part_ = Part::size_line;
        break;
      case Part::trailer:
        result = take_line(body, size, length);
        if (result != Result::complete) return result;
        taken_ += length + 2;
        if (length == 0) return Result::complete;
        trailer_ += length;
        if (trailer_ > kMaxTrailer) return Result::malformed;
        break;
    }
    if (result != Result::complete) return result;
  }
}

// A line from taken_ on: `length` without its CR LF.
ChunkedBody::Result ChunkedBody::take_line(const char* body, size_t size, size_t& length) {
  const char* const line = body + taken_;
  const size_t there = std::min(size - taken_, kMaxLine);
  const char* const end = std::find_if_not(line, line + there, is_text);
  length = size_t(end - line);
  if (length == there) return there == kMaxLine ? Result::malformed : Result::incomplete;
  if (*end != '\r') return Result::malformed;
  if (length + 1 == size - taken_) return Result::incomplete;
  return end[1] == '\n' ? Result::complete : Result::malformed;
}

ChunkedBody::Result ChunkedBody::take_size(const char* line, size_t length, size_t limit) {
  size_t value = 0, digits = 0;
  for (; digits < length && hex_digit(line[digits]) >= 0; ++digits) {
    value = value * 16 + size_t(hex_digit(line[digits]));
    if (value > limit - decoded_) return Result::too_large;
  }
  if (digits == 0 || (digits < length && line[digits] != ';')) return Result::malformed;
  content_left_ = value;
  part_ = value == 0 ? Part::trailer : Part::content;
  return Result::complete;
}

ChunkedBody::Result ChunkedBody::take_content(char* body, size_t size) {
  const size_t count = std::min(content_left_, size - taken_);
  if (count > 0) std::memmove(body + decoded_, body + taken_, count);
  decoded_ += count;
  taken_ += count;
  content_left_ -= count;
  if (content_left_ > 0) return Result::incomplete;
  part_ = Part::content_end;
  return Result::complete;
}

}  // namespace turnstile::http
