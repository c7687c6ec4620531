#include "api/paths.h"

#include "api/name_table.h"

namespace turnstile {
namespace {

// In the order of Path.
constexpr std::array<std::string_view, kPaths> kTexts{
    "/lock",
    "/unlock",
    "/renew",
    "/cancel",
    "/batch",
    "/lock/status",
    "/locks",
    "/lock/subscribe",
    "/subscribe",
    "/events",
    "/refs",
    "/refs/add",
    "/refs/release",
    "/refs/release_node",
    "/admin/break",
    "/admin/forget",
    "/healthz",
    "/readyz",
    "/metrics",
    "/version",
    "/summary",
    "/servers",
    "/openapi.yaml",
    "/page/{file}",
    "/",
};
static_assert(kTexts.back() == "/");
constexpr NameTable<kPaths> kPathTable(kTexts);

constexpr std::string_view kAllowAll = "Allow: GET, HEAD, POST, OPTIONS\r\n";

constexpr uint8_t methods(Path path) {
  switch (path) {
    case Path::lock_status:
      return kGet | kHead | kPost;
    // Streams have no end, and so no head that could say how long they are.
    case Path::lock_subscribe:
    case Path::subscribe:
    case Path::events:
      return kGet;
    case Path::locks:
    case Path::refs:
    case Path::healthz:
    case Path::readyz:
    case Path::metrics:
    case Path::version:
    case Path::summary:
    case Path::servers:
    case Path::openapi:
    case Path::page:
    case Path::root:
      return kGet | kHead;
    default:
      return kPost;
  }
}

}  // namespace

std::optional<Path> find_path(std::string_view path) {
  if (path.starts_with("/page/")) return Path::page;
  const size_t index = kPathTable.find(path);
  if (index == kPathTable.kNotFound) return std::nullopt;
  return Path(index);
}

std::string_view text_of(Path path) { return kTexts[size_t(path)]; }

bool allows(Path path, PathMethod method) { return methods(path) & method; }

std::string_view allow_header(Path path) {
  switch (methods(path)) {
    case kGet | kHead | kPost:
      return kAllowAll;
    case kGet | kHead:
      return "Allow: GET, HEAD, OPTIONS\r\n";
    case kGet:
      return "Allow: GET, OPTIONS\r\n";
    default:
      return "Allow: POST, OPTIONS\r\n";
  }
}

std::string_view options_header(std::string_view path) {
  if (path == "*") return kAllowAll;
  const std::optional<Path> known = find_path(path);
  return known ? allow_header(*known) : std::string_view();
}

}  // namespace turnstile
