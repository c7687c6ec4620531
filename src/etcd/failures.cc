#include "etcd/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace turnstile::etcd {
namespace {

struct Meaning {
  std::string_view text;  // a part of the message
  Failure failure;
};

// Texts of etcd's server (its package rpctypes) and of gRPC's. The first one that fits counts.
constexpr Meaning kMeanings[] = {
    {"mvcc: database space exceeded", Failure::no_space},
    {"mvcc: required revision has been compacted", Failure::compacted},
    {"requested lease not found", Failure::gone},
    // Who we are.
    {"invalid user ID or password", Failure::denied},
    {"permission denied", Failure::denied},
    {"invalid auth token", Failure::denied},
    {"revision of auth store is old", Failure::denied},
    {"user name is empty", Failure::denied},
    {"user name not found", Failure::denied},
    // TLS, as OpenSSL tells it through gRPC.
    {"SSL_ERROR_SSL", Failure::denied},
    {"Peer name", Failure::denied},
    {"Hostname Verification Check failed", Failure::denied},
    // A member that does not take our certificate says so behind the handshake (TLS 1.3), where gRPC does not
    // look: it sees that it was hung up on before a word was said.
    {"Endpoint read failed", Failure::denied},
    // What is too large, or not known there.
    {"request is too large", Failure::refused},
    {"larger than max", Failure::refused},
    {"not capable", Failure::refused},
    // Said before the call was proposed to the others: it is not carried out, here or there.
    {"etcdserver: no leader", Failure::not_done},
    {"proposal dropped", Failure::not_done},
    {"too many requests", Failure::not_done},
    {"rpc not supported for learner", Failure::not_done},
};

Failure by_code(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      return Failure::denied;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::DATA_LOSS:
      return Failure::refused;
    default:
      // UNAVAILABLE ("request timed out", "leader changed", a broken connection), DEADLINE_EXCEEDED, and what
      // we have never heard of: it may have been carried out.
      return Failure::unknown;
  }
}

// The innermost reason of a connection that did not come about; gRPC wraps it several times.
std::string_view reason(std::string_view message) {
  constexpr std::string_view kWrapped = "last error: ";
  if (const size_t at = message.find(kWrapped); at != std::string_view::npos)
    message.remove_prefix(at + kWrapped.size());
  constexpr std::string_view kEtcd = "etcdserver: ";
  if (message.starts_with(kEtcd)) message.remove_prefix(kEtcd.size());
  return message;
}

}  // namespace

bool is_unreachable(const grpc::Status& status) {
  const std::string& text = status.error_message();
  // Said by the choice of a connection, before a call has one.
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         (text.starts_with("failed to connect to all addresses") ||
          text.starts_with("DNS resolution failed"));
}

bool wants_login(const grpc::Status& status) {
  const std::string& text = status.error_message();
  return text.find("invalid auth token") != std::string::npos ||
         text.find("revision of auth store is old") != std::string::npos ||
         text.find("user name is empty") != std::string::npos;  // nobody had to, when we came
}

bool is_about_user(const CallError& error) {
  constexpr std::string_view kSaid[] = {"invalid user ID or password", "permission denied",
                                        "user name is empty", "user name not found"};
  return error.failure == Failure::denied && std::ranges::any_of(kSaid, [&](std::string_view each) {
           return error.message.find(each) != std::string::npos;
         });
}

bool is_of_member(Failure failure) {
  return failure == Failure::unknown || failure == Failure::not_done || failure == Failure::denied;
}

CallError call_error(const grpc::Status& status, std::string_view member) {
  const std::string& message = status.error_message();
  Failure failure = is_unreachable(status) ? Failure::not_done : by_code(status.error_code());
  const auto* const known = std::ranges::find_if(
      kMeanings, [&](const Meaning& each) { return message.find(each.text) != std::string::npos; });
  if (known != std::end(kMeanings)) failure = known->failure;
  std::string text = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
                         ? std::string("no answer in time")
                         : std::string(reason(message));
  if (text.find("Endpoint read failed") != std::string::npos)
    text = "hangs up after the TLS handshake: it may not take our certificate";
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) text += " (is this an etcd?)";
  return {failure, fmt::format("etcd {}: {}", member, text)};
}

std::optional<std::string> too_old(std::string_view version) {
  unsigned major = 0, minor = 0;
  const char* const begin = version.data();
  const char* const end = begin + version.size();
  const auto first = std::from_chars(begin, end, major);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '.' &&
      std::from_chars(first.ptr + 1, end, minor).ec == std::errc() &&
      (major > 3 || (major == 3 && minor >= 4)))
    return std::nullopt;
  return fmt::format("its version is {}, and 3.4 is the oldest that serves",
                     version.empty() ? "not told" : version);
}

}  // namespace turnstile::etcd
