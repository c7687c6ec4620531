// The status page that GET / gives to a browser: its files, compiled in, so that a server can always show
// itself.
//
// The files are in this folder as they are served: plain HTML, CSS and modules, nothing made from something
// else (docs/decisions/0030-a-page-without-a-framework.md).
#pragma once

#include <string>
#include <string_view>

namespace turnstile {

struct PageFile {
  std::string_view name;  // below /page/
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  std::string_view text;
};

// Nothing: there is no such file.
const PageFile* find_page_file(std::string_view name);

// Header lines for an answer with this file, or that it has not changed: how it may be kept, and what a
// browser must not do with it. `varies`: the same address gives others something else.
std::string page_headers(const PageFile& file, bool varies);

}  // namespace turnstile
