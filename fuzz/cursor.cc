// Where a reader goes on: the cursor of a list, and the Last-Event-ID of a stream. What must hold:
// - a cursor that is accepted is the one that the server writes for its lane: a lane has one cursor;
// - a lane of valid names comes back from its cursor as it was;
// - a Last-Event-ID that is accepted is a number in decimal digits, and what is none is 0, which no event
// has.
#include "api/cursor.h"

#include <fmt/format.h>

#include "api/byte_scan.h"
#include "api/event_id.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

void check_cursor(std::string_view text) {
  std::string scratch, again;
  const auto lane = read_cursor(text, ApiLimits(), scratch);
  if (!lane) return;
  append_cursor(again, *lane);
  TS_CHECK(again == text, "a lane has exactly one cursor");
}

void check_lane(std::string_view resource, std::string_view operation) {
  const LaneName lane{OperationName(operation), ResourceId(resource)};
  std::string cursor, scratch;
  append_cursor(cursor, lane);
  const auto back = read_cursor(cursor, ApiLimits(), scratch);
  TS_CHECK(!back || *back == lane, "a cursor means the lane that it was made of");
  const auto plain = [](std::string_view name, size_t longest) {
    return !name.empty() && name.size() <= longest &&
           std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
  };
  const ApiLimits limits;
  if (plain(resource, limits.resource_id) && plain(operation, limits.type))
    TS_CHECK(back.has_value(), "a lane of plain names has a cursor");
}

void check_event_id(std::string_view text) {
  const std::optional<uint64_t> id = parse_last_event_id(text);
  TS_CHECK(id.has_value() == !text.empty(), "a header that is there is an id");
  if (!id || *id == 0) return;
  const size_t zeros = std::min(text.find_first_not_of('0'), text.size());
  TS_CHECK(fmt::to_string(*id) == text.substr(zeros), "an id is the number that was sent");
}

}  // namespace

void run(std::string_view bytes) {
  const ExactCopy copy(bytes);
  check_cursor(copy.view());
  check_event_id(copy.view());
  Input input(bytes);
  const std::string_view resource = input.short_text(), operation = input.rest();
  check_lane(resource, operation);
}

}  // namespace turnstile::fuzz
