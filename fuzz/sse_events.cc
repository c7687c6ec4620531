// Events from the server's writer through the client's reader. What must hold, for any names, texts and
// times:
// - what is written is one event, whose data is one JSON object in valid UTF-8 if its texts were;
// - its fields are those that were written, and its id is the one that was given.
#include <fmt/format.h>
#include <simdjson.h>

#include "api/event_json.h"
#include "client/sse_parser.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

namespace dom = simdjson::dom;

Event event_of(Input& input) {
  Event event;
  event.kind = EventKind(input.byte() % (int(EventKind::refused) + 1));
  event.permanent = input.byte() % 2 == 1;
  event.token = Token(input.number<uint64_t>());
  event.attempt = input.number<uint32_t>();
  // Times that people can have: years of four digits.
  event.at = Time(Duration(int64_t(input.number<uint64_t>() % 253'402'300'800'000'000)));
  event.lane = {OperationName(input.short_text()), ResourceId(input.short_text())};
  event.who = {NodeId(input.short_text()), RequestId(input.short_text())};
  event.reason = input.short_text();
  event.error = input.rest();
  return event;
}

void check_fields(const Event& event, const std::string& data) {
  thread_local dom::parser parser;
  dom::object object;
  TS_CHECK(!parser.parse(data).get(object), "an event is a JSON object");
  const auto check_text = [&](const char* name, std::string_view expected) {
    std::string_view text;
    const bool there = !object.at_key(name).get(text);
    TS_CHECK(there ? text == expected : expected.empty(), "a text of an event is the one that was written");
  };
  const auto check_number = [&](const char* name, uint64_t expected) {
    uint64_t number = 0;
    TS_CHECK(!object.at_key(name).get(number) && number == expected, "a number is the one that was written");
  };
  check_text("type", event.lane.operation.text);
  check_text("resource_id", event.lane.resource.text);
  check_text("node_id", event.who.node.text);
  check_text("request_id", event.who.request.text);
  check_text("error", event.error);
  check_text("reason", event.reason);
  check_text("event", name_of(event.kind));
  check_number("token", uint64_t(event.token));
  check_number("attempt", event.attempt);
  std::string_view at;
  TS_CHECK(!object.at_key("completed_at").get(at) &&
               at.size() == std::string_view("2026-11-15T21:40:46.123456Z").size(),
           "a time has the form that people know");
}

bool is_utf8(const Event& event) {
  for (const std::string_view text : {event.lane.operation.text, event.lane.resource.text,
                                      event.who.node.text, event.who.request.text, event.reason, event.error})
    if (!simdjson::validate_utf8(text.data(), text.size())) return false;
  return true;
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t longest = input.byte();
  const uint64_t id = input.number<uint64_t>();
  const Event event = event_of(input);
  std::string stream;
  append_sse_event(stream, id, event);

  client::SseParser parser;
  size_t events = 0;
  const client::SseParser::OnEvent take = [&](const client::SseEvent& got) {
    ++events;
    TS_CHECK(got.id == (id == 0 ? "" : fmt::to_string(id)), "an event has the id that was given");
    TS_CHECK(got.name.empty(), "an event has no name");
    if (is_utf8(event)) check_fields(event, got.data);
    return true;
  };
  in_pieces(stream, longest,
            [&](std::string_view piece) { return parser.feed(piece, take) == client::SseParser::Fed::more; });
  TS_CHECK(events == 1, "what is written is one event");
}

}  // namespace turnstile::fuzz
