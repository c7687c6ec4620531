// Bodies with Transfer-Encoding: chunked, decoded where they lie.
//
// Beast can do this too, but it lets line feeds pass in quoted chunk extensions and treats trailers as header
// fields; this decoder refuses the one and drops the other. Extensions and trailers mean nothing here, but
// one that is not well formed is refused: a proxy before us may have read it in another way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace turnstile::http {

// Decodes a body in place: the decoded bytes are moved down to the body's start as they become known.
//
// Looks at each byte a bounded number of times, however the bytes come. Invariant: decoded() <= taken().
class ChunkedBody {
 public:
  enum class Result { incomplete, complete, malformed, too_large };

  // `body` is where the body began and `size` what is there by now: decoded() bytes of content, then whatever
  // lay up to taken(), then bytes not yet looked at. At most `limit` bytes of content are let in.
  Result decode(char* body, size_t size, size_t limit);

  size_t decoded() const { return decoded_; }
  size_t taken() const { return taken_; }
  // The owner has cut out the bytes between decoded() and taken().
  void compacted() { taken_ = decoded_; }

 private:
  enum class Part : uint8_t { size_line, content, content_end, trailer };
  static constexpr size_t kMaxLine = 512;      // a size with its extensions, or one trailer field
  static constexpr size_t kMaxTrailer = 4096;  // all trailer fields

  Result take_line(const char* body, size_t size, size_t& length);
  Result take_size(const char* line, size_t length, size_t limit);
  Result take_content(char* body, size_t size);

  Part part_ = Part::size_line;
  size_t decoded_ = 0, taken_ = 0;
  size_t content_left_ = 0;  // of the current chunk
  size_t trailer_ = 0;       // bytes of trailer fields so far
};

}  // namespace turnstile::http
