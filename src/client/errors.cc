#include "client/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace turnstile {

inline namespace v1 {
std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
      return "invalid";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::refused:
      return "refused";
    case ErrorCode::failed:
      return "failed";
    case ErrorCode::lost:
      return "lost";
    case ErrorCode::unauthenticated:
      return "unauthenticated";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::not_turnstile:
      return "not_turnstile";
    case ErrorCode::storage:
      return "storage";
    case ErrorCode::exhausted:
      return "exhausted";
  }
  return "unknown";
}
}  // namespace v1

namespace client {
namespace {

struct Row {
  std::string_view reason;
  ErrorCode code;
};
// The server's codes that mean more than their HTTP status; the words, never the sentences, decide.
constexpr std::array kCodes = {
    Row{"failed", ErrorCode::failed},
    Row{"not_held", ErrorCode::lost},
    Row{"not_holder", ErrorCode::lost},
    Row{"stale_token", ErrorCode::lost},
    Row{"forbidden", ErrorCode::unauthenticated},
    Row{"unauthorized", ErrorCode::unauthenticated},
    Row{"foreign_origin", ErrorCode::unauthenticated},
    Row{"unknown_path", ErrorCode::not_turnstile},  // a URL with a path too many, or an older server
};

ErrorCode code_of(int status, std::string_view reason) {
  const auto row = std::ranges::find(kCodes, reason, &Row::reason);
  if (row != kCodes.end()) return row->code;
  if (status >= 500 || status == 408) return ErrorCode::unavailable;
  if (status == 401) return ErrorCode::unauthenticated;
  return status == 403 || status == 429 ? ErrorCode::refused : ErrorCode::invalid;
}

}  // namespace

ClientError make_error(ErrorCode code, std::string message) {
  return {.code = code, .message = std::move(message), .reason = {}, .nodes = {}};
}

ClientError error_of(int status, const Refusal& refusal) {
  return {.code = code_of(status, refusal.code),
          .message = refusal.error.empty() ? refusal.code : refusal.error,
          .reason = refusal.code,
          .nodes = refusal.nodes};
}

ClientError error_of(const TransportError& error, std::string_view server) {
  switch (error.fault) {
    case Fault::stopped:
      return make_error(ErrorCode::cancelled, "stopped by the caller");
    case Fault::too_large:
      return make_error(ErrorCode::not_turnstile,
                        fmt::format("{} sent more than an answer can be: is it a Turnstile server?", server));
    case Fault::untrusted:
      return make_error(ErrorCode::not_turnstile,
                        fmt::format("{} is not trusted: {}", server, error.message));
    case Fault::misconfigured:
      return make_error(ErrorCode::invalid,
                        fmt::format("cannot ask {}: {}; correct the settings", server, error.message));
    default:
      return make_error(ErrorCode::unavailable, fmt::format("{} does not answer: {}", server, error.message));
  }
}

ClientError not_turnstile(std::string_view server, int status) {
  return make_error(ErrorCode::not_turnstile,
                    fmt::format("what answers at {} (status {}) is no Turnstile server: check the address",
                                server, status));
}

}  // namespace client
}  // namespace turnstile
