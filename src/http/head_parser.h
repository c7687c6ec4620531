// From the bytes of a request's head to its fields. The one file (with head_parser.cc) that knows Beast.
#pragma once

#include <cstdint>
#include <string_view>

#include "http/http.h"

namespace turnstile::http {

struct Head {
  Method method = Method::other;
  std::string_view method_text, path, query;
  std::string_view host, origin, authorization, last_event_id, sec_fetch_site, accept, if_none_match;
  uint64_t content_length = 0;
  bool chunked = false;
  bool http_1_1 = false;
  bool keep_alive = false;
  bool expects_continue = false;
};

// `bytes` is one whole head with its empty line, as HeadScan found it; the views in `head` point into it.
// Returns nullptr, or a sentence that says what is wrong.
const char* parse_head(std::string_view bytes, Head& head);

}  // namespace turnstile::http
