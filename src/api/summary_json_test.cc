#include "api/summary_json.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

TEST(SummaryJson, TellsSumsHistoryAndEndings) {
  SummaryView view;
  view.now = Time(std::chrono::seconds(1));
  view.life = 255;
  view.uptime = std::chrono::seconds(7);
  view.resources = 9;
  view.references = 4;
  view.operations = {{.operation = "pull", .held = 1, .waiting = 2, .kept = 3, .grants = 4, .skips = 5},
                     {.operation = "other", .held = 10, .refusals = 6}};
  view.history.step = std::chrono::seconds(2);
  view.history.grants = {1, 0};
  view.history.handover_ms = {1.25, std::nullopt};
  Event event;
  event.kind = EventKind::completed;
  event.lane = {OperationName("pull"), ResourceId("<script>\"")};
  event.who = {NodeId("n"), RequestId()};
  view.endings = {{12, event}};
  view.last_event = 13;
  std::string out;
  append_summary_json(out, view);
  EXPECT_EQ(
      out,
      R"({"now":"1970-01-01T00:00:01.000000Z","life":"ff","uptime_ms":7000,"resources":9,"held":11,"waiting":2,"kept":3,"references":4,)"
      R"("operations":[{"type":"pull","held":1,"waiting":2,"kept":3,"grants":4,"skips":5,"refusals":0},)"
      R"({"type":"other","held":10,"waiting":0,"kept":0,"grants":0,"skips":0,"refusals":6}],)"
      R"("history":{"step_ms":2000,"until":"1970-01-01T00:00:00.000000Z","grants":[1,0],"skips":[],"refusals":[],"held":[],"waiting":[],)"
      R"("handover_ms":[1.250,null],"commit_ms":[]},)"
      R"("endings":[{"id":12,"event":{"type":"pull","resource_id":"<script>\"","node_id":"n","success":true,"error":"",)"
      R"("completed_at":"1970-01-01T00:00:00.000000Z","event":"completed","token":0,"attempt":0}}],"last_event_id":13})");
}

TEST(SummaryJson, SaysNothingOfReferencesWhereTheServerKeepsNone) {
  std::string out;
  append_summary_json(out, SummaryView());
  EXPECT_EQ(out.find("references"), out.npos);
}

}  // namespace
}  // namespace turnstile
