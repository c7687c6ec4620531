// The paths of the API and the methods each takes: what decides between an answer, 404 and 405.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace turnstile {

enum class Path : uint8_t {
  lock,
  unlock,
  renew,
  cancel,
  batch,
  lock_status,
  locks,
  lock_subscribe,
  subscribe,
  events,
  refs,
  refs_add,
  refs_release,
  refs_release_node,
  admin_break,
  admin_forget,
  healthz,
  readyz,
  metrics,
  version,
  summary,
  servers,
  openapi,
  page,  // every file below it
  root,
};
inline constexpr size_t kPaths = size_t(Path::root) + 1;

// As bits, so that a path's methods are a set.
enum PathMethod : uint8_t { kNoMethodOfOurs = 0, kGet = 1, kHead = 2, kPost = 4 };

// Nothing: 404. Which files there are below /page/ others know. The path is taken as it came, not decoded: no
// path of ours needs an escape.
std::optional<Path> find_path(std::string_view path);
std::string_view text_of(Path path);

bool allows(Path path, PathMethod method);
// "Allow: GET, HEAD, OPTIONS\r\n", for the 405. Every path takes OPTIONS.
std::string_view allow_header(Path path);
// The same, for the answer to OPTIONS; "*" asks about the server as a whole. Empty: there is no such path.
std::string_view options_header(std::string_view path);
inline constexpr unsigned kOptionsStatus = 204;

}  // namespace turnstile
