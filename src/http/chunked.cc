#include "http/chunked.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace turnstile::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_text(char c) { return (c >= ' ' && c != 0x7F) || c == '\t' || (c & 0x80) != 0; }

bool is_token(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != 0 && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
}

// Takes the parts of a line off its front, each if it is there.
class LineCursor {
 public:
  explicit LineCursor(std::string_view line) : rest_(line) {}
  bool at_end() const { return rest_.empty(); }

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void take_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }
  bool take_token() {
    const auto end = std::ranges::find_if_not(rest_, is_token);
    const size_t size = size_t(end - rest_.begin());
    rest_.remove_prefix(size);
    return size > 0;
  }
  // The line has only text in it already, and so has what stands in quotes.
  bool take_quoted() {
    if (!take('"')) return false;
    while (!rest_.empty() && !rest_.starts_with('"')) {
      if (take('\\') && rest_.empty()) return false;
      rest_.remove_prefix(1);
    }
    return take('"');
  }

 private:
  std::string_view rest_;
};

// *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] ) (RFC 9112, 7.1.1)
bool are_extensions(std::string_view text) {
  LineCursor at(text);
  while (!at.at_end()) {
    at.take_blanks();
    if (!at.take(';')) return false;
    at.take_blanks();
    if (!at.take_token()) return false;
    LineCursor behind = at;
    behind.take_blanks();
    if (!behind.take('=')) continue;
    behind.take_blanks();
    if (!behind.take_token() && !behind.take_quoted()) return false;
    at = behind;
  }
  return true;
}

// token ":" and any text: no blank before the colon, no line that goes on with the one before.
bool is_field(std::string_view line) {
  LineCursor at(line);
  return at.take_token() && at.take(':');
}

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
        if (length > 0 && !is_field({body + taken_, length})) return Result::malformed;
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
  if (digits == 0 || !are_extensions({line + digits, length - digits})) return Result::malformed;
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
