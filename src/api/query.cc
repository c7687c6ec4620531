#include "api/query.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>

#include "api/cursor.h"

namespace turnstile {
namespace {

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = char(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// A decimal integer. One that no field may have, such as -1, is read as such; nothing: it is no integer.
std::optional<uint64_t> parse_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  text.remove_prefix(negative);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return error != std::errc() || (negative && number > 0) ? kOutsideEveryRange : number;
}

// Appends the decoded text to `out`, which has room for it; a view of what was appended, or nothing if a
// %-sequence is broken.
std::optional<std::string_view> decode(std::string_view text, std::string& out) {
  const size_t start = out.size();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += char(uint8_t(high * 16 + low));
    i += 2;
  }
  return std::string_view(out).substr(start);
}

}  // namespace

std::optional<ApiError> QueryParser::read_pair(std::string_view pair, FieldSet known) {
  const size_t equals = std::min(pair.find('='), pair.size());
  const auto name = decode(pair.substr(0, equals), decoded_);
  const auto value = decode(pair.substr(std::min(equals + 1, pair.size())), decoded_);
  const auto wrong = [](std::string message) { return make_error(ErrorCode::invalid, std::move(message)); };
  if (!name || !value) return wrong("the query has a broken %-sequence: write % as %25");
  if (!simdjson::validate_utf8(name->data(), name->size()) ||
      !simdjson::validate_utf8(value->data(), value->size()))
    return wrong("the query is not valid UTF-8");

  const std::optional<Field> field = find_field(*name);
  if (!field || !known.has(*field)) return std::nullopt;
  if (!fields_.see(*field)) return wrong(fmt::format("\"{}\" occurs twice: say it once", *name));
  if (kind_of(*field) == FieldKind::text) {
    fields_.set_text(*field, *value);
  } else if (!value->empty()) {
    const std::optional<uint64_t> number = parse_integer(*value);
    if (!number) return wrong(fmt::format("\"{}\" must be an integer in decimal digits", *name));
    fields_.set_number(*field, *number);
  }
  return std::nullopt;
}

std::optional<ApiError> QueryParser::read_fields(std::string_view query, FieldSet known) {
  fields_.clear();
  decoded_.clear();
  decoded_.reserve(query.size());  // decoding never makes a text longer
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    if (std::optional<ApiError> error = read_pair(query.substr(0, end), known)) return error;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return std::nullopt;
}

template <class Make>
auto QueryParser::parse(std::string_view query, FieldSet known, Make make)
    -> decltype(make(Fields(), ApiLimits())) {
  if (std::optional<ApiError> error = read_fields(query, known)) return std::unexpected(*std::move(error));
  return make(fields_, limits_);
}

ApiResult<StatusCommand> QueryParser::parse_status(std::string_view query) {
  return parse(query, kStatusFields, make_status);
}
ApiResult<SubscribeCommand> QueryParser::parse_subscribe(std::string_view query) {
  return parse(query, kSubscribeFields, make_subscribe);
}
ApiResult<EventsRequest> QueryParser::parse_events(std::string_view query) {
  return parse(query, kEventsFields, make_events);
}
ApiResult<ReferencesCommand> QueryParser::parse_references(std::string_view query) {
  return parse(query, kReferencesFields, make_references);
}

ApiResult<ListCommand> QueryParser::parse_list(std::string_view query) {
  ApiResult<ListCommand> command = parse(query, kListFields, make_list);
  if (!command || !fields_.has(Field::cursor)) return command;
  const auto after = read_cursor(fields_.text(Field::cursor), limits_, cursor_);
  if (!after)
    return invalid("\"cursor\" is not one of this server's: send the next_cursor of the last page as it was");
  command->after = *after;
  return command;
}

}  // namespace turnstile
