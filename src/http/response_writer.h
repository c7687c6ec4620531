// The bytes of answers: status line and headers, as short as they can be, and the Date that is made once a
// second.
#pragma once

#include <array>
#include <string_view>

#include "http/buffers.h"

namespace turnstile::http {

// How an answer is to be framed; follows from the request that it answers.
struct Framing {
  bool http_1_1 = true;
  bool keep_alive = true;
  bool head_only = false;  // the answer to HEAD
};

// Time: `now` comes with each call and never goes back. Threads: none; part of a loop.
class ResponseWriter {
 public:
  void response(OutBuffer& out, const Response& response, Framing framing, Time now);
  // The head of an answer without end, and what it begins with: for HTTP/1.1 as a chunk of its own.
  void stream_head(OutBuffer& out, std::string_view content_type, Framing framing, std::string_view first,
                   Time now);

 private:
  std::string_view date(Time now);

  std::array<char, 29> date_{};
  std::chrono::sys_seconds date_of_{std::chrono::seconds(-1)};
};

}  // namespace turnstile::http
