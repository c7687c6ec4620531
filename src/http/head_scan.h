// Where a request's head ends, and whether its lines are well formed.
//
// A pass of its own before the parser, because Beast accepts folded lines, and because a head with bare line
// feeds never shows the parser its end: it must be refused when the first bad line is seen, not when time is
// over.
#pragma once

#include <cstddef>
#include <string_view>

namespace turnstile::http {

// Remembers how far it has looked, so that a head that comes byte by byte is looked at once.
class HeadScan {
 public:
  enum class Result { incomplete, complete, malformed };

  // `bytes` begins with the request's first byte and has grown since the last call.
  Result scan(std::string_view bytes);

  // After `complete`: the length of the head with its empty line.
  size_t size() const { return at_; }
  bool started() const { return at_ > 0; }
  void reset() { at_ = 0; }

 private:
  size_t at_ = 0;
};

}  // namespace turnstile::http
