#include "api/error.h"

#include <array>

#include "api/json_append.h"
#include "base/check.h"

namespace turnstile {
namespace {

constexpr std::string_view kRetry = "Retry-After: 1\r\n";

// In the order of ErrorCode.
constexpr std::array<ErrorRow, kErrorCodes> kErrorTable{{
    {400, "invalid", "the request is malformed: see /openapi.yaml for what this call takes", {}},
    {401, "unauthorized",
     "this server requires a credential: send its secret (Authorization: Bearer SECRET), or present a client "
     "certificate",
     "WWW-Authenticate: Bearer realm=\"turnstile\"\r\n"},
    {403,
     "forbidden",
     "this caller may not do that: ask the server's administrator for the role, node or prefix",
     {}},
    {403,
     "foreign_origin",
     "this request comes from another site's web page, or it names a host that is not this server: if the "
     "name is this server's, start it with --host NAME",
     {}},
    {403, "busy", "another requester holds the resource, and this call does not wait: try again later", {}},
    {403, "referenced", "nodes still use the resource: release their references first", {}},
    {403, "failed", "the work failed permanently a moment ago: look at the cause before you try again", {}},
    {403, "not_held", "nobody holds this lock: it was released, has expired or was never taken", {}},
    {403, "not_holder", "another requester holds this lock: only its holder can do that", {}},
    {403,
     "stale_token",
     "the token belongs to an earlier hold: yours has ended, do not touch the resource",
     {}},
    {403,
     "references_off",
     "this server keeps no references: start it with --references server, or count them yourself",
     {}},
    {404, "unknown_path", "there is nothing at this path: /openapi.yaml lists all paths", {}},
    {405,
     "method_not_allowed",
     "this path does not take that method: the Allow header names the methods that it takes",
     {}},
    {408, "timeout", "the request did not arrive completely in time: send it again", {}},
    {413, "too_large", "the body is larger than this server takes: send less, or split the batch", {}},
    {429, "queue_full", "too many already wait for this lock: try again later", {}},
    {429, "too_many_requests", "the server has reached one of its limits: try again later", {}},
    {431,
     "headers_too_large",
     "the request's head is larger than this server takes: send fewer or shorter headers",
     {}},
    {307, "not_leader", "another server leads at the moment: ask that one", {}},
    {503, "no_leader", "no server leads at the moment: ask again in a moment", kRetry},
    {503, "outcome_unknown",
     "this server led until a moment ago, and it is not known whether this was done: ask again with the same "
     "request_id",
     kRetry},
    {503, "store_unavailable", "the store does not answer: ask again with the same request_id", kRetry},
    {503, "shutting_down", "this server is stopping: ask again in a moment", kRetry},
}};
static_assert(kErrorTable.back().code == "shutting_down");

}  // namespace

const ErrorRow& error_row(ErrorCode code) { return kErrorTable[size_t(code)]; }

ApiError make_error(ErrorCode code) { return make_error(code, std::string(error_row(code).message)); }

ApiError make_error(ErrorCode code, std::string message) {
  const ErrorRow& row = error_row(code);
  return {row.status, row.code, std::move(message), row.headers};
}

ErrorCode error_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::busy:
      return ErrorCode::busy;
    case Refusal::referenced:
      return ErrorCode::referenced;
    case Refusal::failed:
      return ErrorCode::failed;
    case Refusal::queue_full:
      return ErrorCode::queue_full;
    case Refusal::not_held:
      return ErrorCode::not_held;
    case Refusal::not_holder:
      return ErrorCode::not_holder;
    case Refusal::stale_token:
      return ErrorCode::stale_token;
    case Refusal::references_off:
      return ErrorCode::references_off;
    case Refusal::too_many_operations:
    case Refusal::too_many_resources:
    case Refusal::too_many_references:
    case Refusal::too_many_waiters:
      return ErrorCode::too_many_requests;
    case Refusal::none:
      break;
  }
  TS_CHECK(false, "an answer that is refused says why");
  return ErrorCode::invalid;
}

std::string_view message_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::too_many_operations:
      return "the server already knows as many operations of users' own as it can: use fewer types";
    case Refusal::too_many_resources:
      return "the server already has as many resources as it may (max-resources): try again later";
    case Refusal::too_many_references:
      return "the server already has as many references as it may (max-references): release some";
    case Refusal::too_many_waiters:
      return "as many as may (max-waiters) already wait on this server: try again later";
    default:
      return error_row(error_of(refusal)).message;
  }
}

ErrorCode error_of_http_status(unsigned status) {
  for (size_t i = 0; i < kErrorCodes; ++i)
    if (kErrorTable[i].status == status && status != 403 && status != 429 && status != 503)
      return ErrorCode(i);
  if (status == 429) return ErrorCode::too_many_requests;
  if (status == 503) return ErrorCode::shutting_down;
  return ErrorCode::invalid;
}

void append_error_json(std::string& out, const ApiError& error, AnswerForm form) {
  begin_object(out, form, error.status);
  append_text_field(out, R"("error":)", error.message);
  append_text_field(out, R"(,"code":)", error.code);
  out += '}';
}

}  // namespace turnstile
