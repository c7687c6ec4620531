// One HTTP answer out of bytes. The one file (with answer_parser.cc) that knows Beast.
#pragma once

#include <memory>
#include <string_view>

#include "client/transport.h"

namespace turnstile::client {

// Framing is Beast's: lengths, chunks, and bodies that end with the connection.
//
// Invariant: takes at most kMaxBody bytes of body and 8 KiB of head. Threads: one at a time.
class AnswerParser {
 public:
  static constexpr size_t kMaxBody =
      64 << 20;  // a list of 1,000 lanes with 1,000 waiters each; a bound, no more

  AnswerParser();
  ~AnswerParser();

  enum class Fed { more, done, wrong, too_large };
  // All of the bytes; behind a complete answer there must be none.
  Fed feed(std::string_view bytes);
  Fed end();  // of the connection
  bool keep_alive() const;
  Answer take();

 private:
  class Beast;
  std::unique_ptr<Beast> beast_;
};

}  // namespace turnstile::client
