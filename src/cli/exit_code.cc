#include "cli/exit_code.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/format.h"
#include "cli/json.h"

namespace turnstile::cli {
namespace {

// What to do, for the classes whose messages come from the server or the network and do not say.
std::string_view advice(const ClientError& error) {
  switch (error.code) {
    case ErrorCode::unavailable:
      return "; is turnstiled running there? name another with --server or TURNSTILE_SERVER";
    case ErrorCode::unauthenticated:
      return "; give a token that the server knows with --token-file";
    case ErrorCode::busy:
      return "; wait for it with --wait";
    default:
      return "";
  }
}

}  // namespace

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
      return kUsage;
    case ErrorCode::busy:
    case ErrorCode::timed_out:
      return kBusy;
    case ErrorCode::refused:
    case ErrorCode::failed:
      return kRefused;
    case ErrorCode::lost:
      return kLost;
    case ErrorCode::unavailable:
    case ErrorCode::not_turnstile:
      return kUnavailable;
    case ErrorCode::unauthenticated:
      return kUnauthenticated;
    case ErrorCode::cancelled:  // by another program: our own signals are told apart before
    case ErrorCode::storage:
    case ErrorCode::exhausted:
      break;
  }
  return kUnexpected;
}

std::string exit_code_help() {
  return "Exit codes: 0 done; 1 unexpected failure; 2 wrong usage; 10 skipped, the work has been done;\n"
         "11 busy or timed out; 12 refused; 13 the hold was lost or is not yours; 14 no server, or not a\n"
         "Turnstile server; 15 not authenticated; 128+N ended by signal N. `exec` ends with its command's\n"
         "code, and with 0 when the work has been done by another.";
}

int report(Output output, std::string_view message, std::string_view code, int exit) {
  const std::string line = one_line(message);
  if (output == Output::json) {
    boost::json::object object;
    object["error"] = line;
    object["code"] = std::string_view(code);
    object["exit"] = exit;
    fmt::print(stderr, "{}\n", boost::json::serialize(object));
  } else {
    fmt::print(stderr, "turnstile: {}\n", line);
  }
  return exit;
}

int report(Output output, const ClientError& error) {
  std::string message = error.message;
  if (!error.nodes.empty()) message += fmt::format(" (by {})", fmt::join(error.nodes, ", "));
  message += advice(error);
  return report(output, message,
                error.reason.empty() ? to_string(error.code) : std::string_view(error.reason),
                exit_code_of(error.code));
}

}  // namespace turnstile::cli
