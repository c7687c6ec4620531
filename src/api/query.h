// Query strings into commands: the GET half of the API, under the same rules as the JSON bodies (commands.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/commands.h"
#include "api/error.h"
#include "api/limits.h"

namespace turnstile {

// Reads one query at a time: name=value&name=value, percent-encoded, '+' for a space.
//
// Strict where a guess could name the wrong lock: a broken %-sequence, a known name twice and invalid UTF-8
// are 400. What it returns holds views into the parser's own memory: they live until the next parse. Threads:
// one parser for each.
class QueryParser {
 public:
  explicit QueryParser(const ApiLimits& limits = {}) : limits_(limits) {}
  QueryParser(const QueryParser&) = delete;
  QueryParser& operator=(const QueryParser&) = delete;

  ApiResult<StatusCommand> parse_status(std::string_view query);
  ApiResult<SubscribeCommand> parse_subscribe(std::string_view query);
  ApiResult<EventsRequest> parse_events(std::string_view query);
  ApiResult<ListCommand> parse_list(std::string_view query);
  ApiResult<ReferencesCommand> parse_references(std::string_view query);

 private:
  template <class Make>
  auto parse(std::string_view query, FieldSet known, Make make) -> decltype(make(Fields(), ApiLimits()));
  std::optional<ApiError> read_fields(std::string_view query, FieldSet known);
  std::optional<ApiError> read_pair(std::string_view pair, FieldSet known);

  const ApiLimits limits_;
  Fields fields_;
  std::string decoded_;  // names and values; never grows while views into it exist
  std::string cursor_;
};

}  // namespace turnstile
