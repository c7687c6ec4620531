// JSON bodies into commands.
//
// simdjson's DOM parser, not On-Demand: it checks every byte of the body (a wrong value in a field that
// nobody reads, text behind the object). Decision 0006.
#pragma once

#include <memory>
#include <string_view>
#include <variant>

#include "api/command.h"
#include "api/error.h"
#include "api/limits.h"

namespace turnstile {

// One request of a batch: a command, or why it is none.
using BatchItem = std::variant<LockCommand, UnlockCommand, RenewCommand, CancelCommand, AddReferenceCommand,
                               ReleaseReferenceCommand, ApiError>;

// Reads one body at a time, without allocating once its memory has grown to the largest body seen.
//
// A body must be one JSON object in valid UTF-8; kBodyPadding bytes behind it must be readable, whatever they
// hold. What it returns holds views into the body and the parser's own memory: they live until the next
// parse. Threads: one parser for each.
class RequestParser {
 public:
  static constexpr size_t kBodyPadding = 64;

  explicit RequestParser(const ApiLimits& limits = {});
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  ApiResult<LockRequest> parse_lock(std::string_view body);
  ApiResult<UnlockCommand> parse_unlock(std::string_view body);
  ApiResult<RenewCommand> parse_renew(std::string_view body);
  ApiResult<CancelCommand> parse_cancel(std::string_view body);
  ApiResult<StatusCommand> parse_status(std::string_view body);
  ApiResult<BreakCommand> parse_break(std::string_view body);
  ApiResult<ForgetCommand> parse_forget(std::string_view body);
  ApiResult<ReferenceCommand> parse_reference(std::string_view body);  // /refs/add and /refs/release
  ApiResult<NodeId> parse_release_node(std::string_view body);

  // Reads a whole batch and tells how many requests it has; each is then taken with next_in_batch(), so
  // often. A faulty request does not spoil the others. Views live until the next parse, not only until the
  // next item.
  ApiResult<size_t> parse_batch(std::string_view body);
  BatchItem next_in_batch();

 private:
  struct Json;  // keeps simdjson's 30,000 lines out of everybody else's build

  template <class Make>
  auto parse(std::string_view body, FieldSet known, Make make) -> decltype(make(Fields(), ApiLimits()));

  const ApiLimits limits_;
  const std::unique_ptr<Json> json_;
};

}  // namespace turnstile
