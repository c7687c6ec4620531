#include "cli/exit_code.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "base/standard_streams.h"
#include "cli/format.h"
#include "cli/json.h"

namespace turnstile::cli {
namespace {

// What to do, for the classes whose messages come from the server or the network and do not say.
std::string_view advice(const ClientError& error) {
  switch (error.code) {
    case ErrorCode::unavailable:
      if (error.reason == "no_leader" || error.reason == "not_leader") return "; see turnstile status";
      if (error.message.find("resolve") != error.message.npos)
        return "; check the name in --server or TURNSTILE_SERVER";
      if (error.message.find("plain HTTP") != error.message.npos) return "";
      return "; is turnstiled running there? name another with --server or TURNSTILE_SERVER";
    case ErrorCode::unauthenticated:
      // 403: it is known who asks.
      if (error.reason == "forbidden" || error.reason == "foreign_origin") return "";
      return "; give a credential that the server knows with --credential-file, or a certificate with --cert "
             "and --key";
    case ErrorCode::busy:
      return "; to wait for it: --wait 30s";
    case ErrorCode::timed_out:
      return "; to wait longer: --wait";
    default:
      return "";
  }
}

struct Name {
  std::string_view field, word;
};
// The server speaks of the fields of its API; here they have other names.
constexpr std::array kNames = {Name{"\"lease_ms\"", "--lease"},
                               Name{"\"wait_ms\"", "--wait"},
                               Name{"\"keep_ms\"", "--keep"},
                               Name{"\"type\"", "TYPE"},
                               Name{"\"resource_id\"", "RESOURCE"},
                               Name{"\"node_id\"", "--node"},
                               Name{"\"request_id\"", "--request-id"},
                               Name{"\"token\"", "--token"},
                               Name{"\"info\"", "--info"},
                               Name{"\"scope\"", "--scope"},
                               Name{"\"error\"", "the error"},
                               Name{"\"reason\"", "--reason"}};

// "must be from 100 to 86400000" of a field in milliseconds, as durations.
std::string with_durations(std::string_view rest) {
  std::string text(rest);
  unsigned long long least = 0, most = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), " must be from %llu to %llu%n", &least, &most, &used) != 2) return text;
  return fmt::format(" must be from {} to {}{}", show_duration(Milliseconds(least)),
                     show_duration(Milliseconds(most)), text.substr(size_t(used)));
}

std::string in_our_words(std::string message) {
  for (const Name& name : kNames) {
    const size_t at = message.find(name.field);
    if (at == std::string::npos) continue;
    const std::string rest = message.substr(at + name.field.size());
    message = message.substr(0, at) + std::string(name.word) +
              (name.field.ends_with("_ms\"") ? with_durations(rest) : rest);
  }
  return message;
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
  return "Exit codes: 0 done; 1 unexpected failure; 2 wrong usage; 10 skipped, the work is already done;\n"
         "11 busy or timed out; 12 refused; 13 the hold is lost or not yours; 14 no server, or not a\n"
         "Turnstile server; 15 not logged in or not allowed; 128+N ended by signal N. `exec` and `once` end\n"
         "with their command's code (124: --timeout); when another node has done the work, with 0 or\n"
         "--skip-code.";
}

int report(Output output, std::string_view message, std::string_view code, int exit) {
  const std::string line = one_line(message);
  if (output == Output::json) {
    boost::json::object object;
    object["error"] = line;
    object["code"] = std::string_view(code);
    object["exit"] = exit;
    print_error("{}\n", json_text(object));
  } else {
    print_error("turnstile: {}\n", line);
  }
  return exit;
}

int report(Output output, const ClientError& error) {
  std::string message = error.code == ErrorCode::invalid ? in_our_words(error.message) : error.message;
  if (!error.nodes.empty()) message += fmt::format(" (by {})", fmt::join(error.nodes, ", "));
  message += advice(error);
  return report(output, message,
                error.reason.empty() ? to_string(error.code) : std::string_view(error.reason),
                exit_code_of(error.code));
}

}  // namespace turnstile::cli
