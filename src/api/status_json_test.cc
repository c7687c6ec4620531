#include "api/status_json.h"

#include "api/answer_writer.h"
#include "api/query.h"
#include "api/test_body.h"

namespace turnstile {
namespace {

std::string status_json(const StatusAnswer& answer) {
  std::string out;
  EXPECT_EQ(append_status_answer(out, answer), 200u);
  return out;
}

TEST(StatusJson, AnIdleLaneHasEmptyListsAndNoHolder) {
  StatusAnswer answer;
  answer.lane = {OperationName("pull"), ResourceId("r")};
  EXPECT_EQ(
      status_json(answer),
      R"({"type":"pull","resource_id":"r","state":"idle","queue":[],"references":{"count":0,"nodes":[]},)"
      R"("waiters":[],"acquired":false,"completed":false,"success":false,"error":""})");
}

TEST(StatusJson, AHeldLaneTellsHolderAndQueue) {
  StatusAnswer answer;
  answer.lane = {OperationName("pull"), ResourceId("a\"b")};
  answer.state = LaneState::held;
  answer.holder = HolderView{OperationName("pull"),
                             {NodeId("h"), RequestId()},
                             Token(5),
                             Time(Duration(1)),
                             std::chrono::seconds(2),
                             Progress{1, 10},
                             "why"};
  answer.queue = {{{NodeId("w1"), RequestId("q")}, 1, Time(Duration(2)), "info"},
                  {{NodeId("w2"), RequestId()}, 2, Time(Duration(3)), ""}};
  answer.queue_length = 2;
  constexpr std::string_view kNodes[] = {"n"}, kWaiters[] = {"w1", "w2", "w3"};
  answer.references = {1, kNodes};
  answer.waiters = {3, kWaiters};
  answer.position = 2;
  const Parsed parsed(status_json(answer));
  EXPECT_EQ(parsed.text("/resource_id"), "a\"b");
  EXPECT_EQ(parsed.text("/state"), "held");
  EXPECT_EQ(parsed.text("/holder/node_id"), "h");
  EXPECT_FALSE(parsed.has("/holder/request_id"));
  EXPECT_FALSE(parsed.has("/holder/type"));
  EXPECT_EQ(parsed.number("/holder/lease_ms"), 2000u);
  EXPECT_EQ(parsed.number("/holder/done"), 1u);
  EXPECT_EQ(parsed.number("/holder/total"), 10u);
  EXPECT_EQ(parsed.text("/holder/info"), "why");
  EXPECT_EQ(parsed.text("/queue/0/request_id"), "q");
  EXPECT_EQ(parsed.text("/queue/0/info"), "info");
  EXPECT_EQ(parsed.number("/queue/1/position"), 2u);
  EXPECT_EQ(parsed.text("/queue/1/since"), "1970-01-01T00:00:00.000003Z");
  EXPECT_FALSE(parsed.has("/queue/1/info"));
  EXPECT_FALSE(parsed.has("/queue_length")) << "nothing was cut";
  EXPECT_EQ(parsed.number("/references/count"), 1u);
  EXPECT_EQ(parsed.text("/waiters/2"), "w3");
  EXPECT_EQ(parsed.number("/position"), 2u);
  EXPECT_FALSE(parsed.has("/token"));
  EXPECT_FALSE(parsed.has("/waiters_count"));
  answer.waiters.count = 6000;
  EXPECT_EQ(Parsed(status_json(answer)).number("/waiters_count"), 6000u);
  answer.queue_length = 5000;
  EXPECT_EQ(Parsed(status_json(answer)).number("/queue_length"), 5000u);
}

TEST(StatusJson, TheAskingRequesterSeesItsHoldOrHowItsWaitEnded) {
  StatusAnswer answer;
  answer.acquired = true;
  answer.token = Token(9);
  answer.attempt = 2;
  const Parsed holds(status_json(answer));
  EXPECT_TRUE(holds.truth("/acquired"));
  EXPECT_EQ(holds.number("/token"), 9u);
  EXPECT_EQ(holds.number("/attempt"), 2u);
  EXPECT_FALSE(holds.has("/position"));

  StatusAnswer ended;
  ended.state = LaneState::completed;
  ended.completion = CompletionView{NodeId("h"), false, true, "bad digest", Time(Duration(0))};
  ended.completed = true;
  ended.error = "bad digest";
  const Parsed parsed(status_json(ended));
  EXPECT_EQ(parsed.text("/state"), "completed");
  EXPECT_TRUE(parsed.truth("/completed"));
  EXPECT_FALSE(parsed.truth("/success"));
  EXPECT_EQ(parsed.text("/error"), "bad digest");
  EXPECT_EQ(parsed.text("/completion/node_id"), "h");
  EXPECT_TRUE(parsed.truth("/completion/permanent"));
  EXPECT_FALSE(parsed.truth("/completion/success"));
  EXPECT_EQ(parsed.text("/completion/completed_at"), "1970-01-01T00:00:00.000000Z");
}

TEST(StatusJson, S39_ASuccessTellsWhatItLeft) {
  StatusAnswer answer;
  answer.completion = CompletionView{NodeId("h"), true, false, {}, Time(Duration(0)), "v1"};
  answer.completed = answer.success = true;
  answer.done = DoneView{NodeId("h"), std::chrono::seconds(2), "v1"};
  const Parsed parsed(status_json(answer));
  EXPECT_EQ(parsed.text("/completion/result"), "v1");
  EXPECT_EQ(parsed.text("/result"), "v1");
  EXPECT_EQ(parsed.text("/completed_by"), "h");
  EXPECT_EQ(parsed.number("/completed_ms_ago"), 2000u);
  const Parsed without(status_json({}));
  for (const char* field : {"/result", "/completed_by", "/completed_ms_ago"})
    EXPECT_FALSE(without.has(field)) << field;
}

TEST(ListJson, APageEndsWithACursorThatTheQueryParserTakes) {
  std::vector<StatusAnswer> page(2);
  page[0].lane = {OperationName("pull"), ResourceId("a")};
  page[1].lane = {OperationName("delete"), ResourceId("b:é")};
  page[1].state = LaneState::waiting;
  std::string out;
  EXPECT_EQ(append_list_answer(out, page, page[1].lane), 200u);
  const Parsed parsed(out);
  EXPECT_EQ(parsed.text("/locks/0/resource_id"), "a");
  EXPECT_EQ(parsed.text("/locks/1/state"), "waiting");
  QueryParser parser;
  const auto next = parser.parse_list("cursor=" + parsed.text("/next_cursor"));
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->after, page[1].lane);

  std::string last;
  append_list_answer(last, {}, std::nullopt);
  EXPECT_EQ(last, R"({"locks":[]})");
}

}  // namespace
}  // namespace turnstile
