#include "api/event_json.h"

#include "api/test_body.h"

namespace turnstile {
namespace {

Event event(EventKind kind) {
  Event made;
  made.kind = kind;
  made.lane = {OperationName("pull"), ResourceId("r")};
  made.who = {NodeId("n"), RequestId()};
  made.at = Time(Duration(1'500'000));
  made.token = Token(7);
  made.attempt = 1;
  return made;
}

std::string json(const Event& event) {
  std::string out;
  append_event_json(out, event);
  return out;
}

TEST(EventJson, S29_TheSixFieldsOfTheSeedsComeFirst) {
  EXPECT_EQ(json(event(EventKind::completed)),
            R"({"type":"pull","resource_id":"r","node_id":"n","success":true,"error":"",)"
            R"("completed_at":"1970-01-01T00:00:01.500000Z","event":"completed","token":7,"attempt":1})");
}

TEST(EventJson, S39_ACompletionCarriesItsResult) {
  Event completed = event(EventKind::completed);
  EXPECT_FALSE(Parsed(json(completed)).has("/result"));
  completed.result = "two\nlines";
  EXPECT_EQ(Parsed(json(completed)).text("/result"), "two\nlines");
}

TEST(EventJson, S29_OnlyACompletionIsASuccess) {
  const struct {
    EventKind kind;
    const char* name;
  } cases[] = {{EventKind::granted, "granted"}, {EventKind::completed, "completed"},
               {EventKind::failed, "failed"},   {EventKind::expired, "expired"},
               {EventKind::broken, "broken"},   {EventKind::cancelled, "cancelled"},
               {EventKind::refused, "refused"}};
  for (const auto& [kind, name] : cases) {
    const Parsed parsed(json(event(kind)));
    EXPECT_EQ(parsed.text("/event"), name);
    EXPECT_EQ(parsed.truth("/success"), kind == EventKind::completed) << name;
  }
}

TEST(EventJson, S29_ReasonRequestIdAndPermanentAreThereWhenTheySaySomething) {
  Event failed = event(EventKind::failed);
  failed.error = "bad digest";
  failed.permanent = true;
  failed.who.request = RequestId("q");
  failed.reason = "lease";
  const Parsed parsed(json(failed));
  EXPECT_EQ(parsed.text("/error"), "bad digest");
  EXPECT_EQ(parsed.text("/request_id"), "q");
  EXPECT_EQ(parsed.text("/reason"), "lease");
  EXPECT_TRUE(parsed.truth("/permanent"));
  const Parsed bare(json(event(EventKind::failed)));
  for (const char* absent : {"/reason", "/request_id", "/permanent"})
    EXPECT_FALSE(bare.has(absent)) << absent;
}

TEST(Sse, AnEventIsAnIdAndOneLineOfDataWhateverItsTextsHold) {
  Event failed = event(EventKind::failed);
  failed.error = "line 1\nline 2\r\n\ndata: {}";
  std::string out;
  append_sse_event(out, 42, failed);
  EXPECT_TRUE(out.starts_with("id: 42\ndata: {")) << out;
  EXPECT_TRUE(out.ends_with("}\n\n")) << out;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 3);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\r'), 0);
  const std::string data = out.substr(out.find('{'), out.rfind('}') - out.find('{') + 1);
  EXPECT_EQ(Parsed(data).text("/error"), failed.error);
}

TEST(Sse, S28_AResetHasAnEventLineAndTheIdToGoOnFrom) {
  std::string out;
  append_sse_reset(out, 43);
  EXPECT_TRUE(out.starts_with("event: reset\nid: 43\ndata: {\"event\":\"reset\"")) << out;
  EXPECT_TRUE(out.ends_with("}\n\n")) << out;
}

TEST(Sse, ACommentIsNoEvent) {
  EXPECT_TRUE(kSseComment.starts_with(':'));
  EXPECT_TRUE(kSseComment.ends_with("\n\n"));
}

}  // namespace
}  // namespace turnstile
