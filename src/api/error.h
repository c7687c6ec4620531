// Every way in which a call can fail, in one table: the code a program reads, the HTTP status, and the
// sentence a person reads. No other folder knows a status number.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "engine/answer.h"

namespace turnstile {

enum class ErrorCode : uint8_t {
  invalid,
  unauthorized,
  forbidden,
  foreign_origin,
  busy,
  referenced,
  failed,
  not_held,
  not_holder,
  stale_token,
  references_off,
  unknown_path,
  method_not_allowed,
  timeout,
  too_large,
  queue_full,
  too_many_requests,
  headers_too_large,
  not_leader,
  no_leader,
  outcome_unknown,
  store_unavailable,
  shutting_down,
};
inline constexpr size_t kErrorCodes = size_t(ErrorCode::shutting_down) + 1;

// One row of the table.
struct ErrorRow {
  unsigned status;
  std::string_view code;
  std::string_view message;  // what is wrong and what to do, for when nothing more exact is known
  std::string_view headers;  // lines that this error adds to the answer's head, each with its CRLF
};
const ErrorRow& error_row(ErrorCode code);

// What a caller is told instead of an answer.
struct ApiError {
  unsigned status = 400;
  std::string_view code;
  std::string message;
  std::string_view headers;
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

ApiError make_error(ErrorCode code);
ApiError make_error(ErrorCode code, std::string message);
inline std::unexpected<ApiError> invalid(std::string message) {
  return std::unexpected(make_error(ErrorCode::invalid, std::move(message)));
}

// The engine's refusals. Not for Refusal::none, which is none.
ErrorCode error_of(Refusal refusal);
// The table's sentence, or a more exact one.
std::string_view message_of(Refusal refusal);

// An error that the HTTP layer found by itself and for which it knows only the status.
ErrorCode error_of_http_status(unsigned status);

// Whether an answer stands alone or among the answers of a batch, where it says its status itself.
enum class AnswerForm : uint8_t { alone, in_batch };

// {"error":"...","code":"..."}
void append_error_json(std::string& out, const ApiError& error, AnswerForm form = AnswerForm::alone);

}  // namespace turnstile
