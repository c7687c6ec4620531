#include "page/page_files.h"

#include <fmt/format.h>

namespace turnstile {
namespace {

// Nothing from elsewhere, nothing inline, no frame around it, and no text that becomes markup or code: what
// callers have named their resources must stay text even if this page had a mistake.
constexpr std::string_view kSafety =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

}  // namespace

std::string page_headers(const PageFile& file, bool varies) {
  // A browser asks each time whether it has changed, so that after an upgrade no two versions are mixed.
  return fmt::format("ETag: {}\r\nCache-Control: no-cache\r\n{}{}", file.etag,
                     varies ? "Vary: Accept\r\n" : "", kSafety);
}

}  // namespace turnstile
