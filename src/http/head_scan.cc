#include "http/head_scan.h"

#include <cstring>

namespace turnstile::http {

HeadScan::Result HeadScan::scan(std::string_view bytes) {
  const char* const data = bytes.data();
  // A method begins with a letter; a TLS greeting does not, and would otherwise be waited for in vain.
  if (at_ == 0 && !bytes.empty() && (data[0] < 'A' || data[0] > 'z')) return Result::malformed;
  while (at_ < bytes.size()) {
    const bool line_begins = at_ > 0 && data[at_ - 1] == '\n';
    if (line_begins && (data[at_] == ' ' || data[at_] == '\t')) return Result::malformed;  // a folded line
    const void* const found = std::memchr(data + at_, '\n', bytes.size() - at_);
    if (!found) {
      at_ = bytes.size();
      break;
    }
    const size_t feed = size_t(static_cast<const char*>(found) - data);
    if (feed == 0 || data[feed - 1] != '\r') return Result::malformed;
    at_ = feed + 1;
    if (feed >= 2 && data[feed - 2] == '\n') return Result::complete;
  }
  return Result::incomplete;
}

}  // namespace turnstile::http
