// Requests out and answers in.
#include <gtest/gtest.h>

#include "client/answer_parser.h"
#include "client/answers.h"
#include "client/requests.h"
#include "client/server_url.h"

namespace turnstile::client {
namespace {

const Requester kMe{.operation = "pull", .resource = "a\"b\\c\n\x7f ü", .node_id = "n", .request_id = ""};

TEST(Requests, TextsAreEscapedAndEmptyOptionalOnesLeftOut) {
  EXPECT_EQ(cancel_body(kMe), R"({"type":"pull","resource_id":"a\"b\\c\u000a\u007f ü","node_id":"n"})");
}

TEST(Requests, ALockSaysOnlyWhatDiffersFromTheDefaults) {
  LockRequest request;
  request.lease = Milliseconds(0);
  const Requester who{.operation = "pull", .resource = "r", .node_id = "n", .request_id = "q"};
  EXPECT_EQ(lock_body({.who = who, .request = request}),
            R"({"type":"pull","resource_id":"r","node_id":"n","request_id":"q"})");
  request = {
      .scope = "resource", .lease = Milliseconds(500), .monitor = true, .dereference = true, .info = "i"};
  EXPECT_EQ(
      lock_body({.who = who, .request = request, .wait = Milliseconds(9)}, "lock"),
      R"({"call":"lock","type":"pull","resource_id":"r","node_id":"n","request_id":"q","scope":"resource",)"
      R"("wait_ms":9,"lease_ms":500,"monitor":true,"dereference":true,"info":"i"})");
}

TEST(D6, AFailureWithoutATextIsStillSentAsAFailure) {
  const Requester who{.operation = "pull", .resource = "r", .node_id = "n", .request_id = "q"};
  EXPECT_NE(unlock_body(who, 5, WorkResult::failed("")).find(R"("token":5,"success":false)"),
            std::string::npos);
  EXPECT_NE(unlock_body(who, 5, WorkResult::succeeded()).find(R"("success":true)"), std::string::npos);
}

TEST(D6, AnErrorIsAnyTextAndToldAsFarAsTheServerTakesIt) {
  const Requester who{.operation = "pull", .resource = "r", .node_id = "n", .request_id = {}};
  EXPECT_NE(unlock_body(who, 5, WorkResult::failed("no \xff")).find("\"error\":\"no \uFFFD\""),
            std::string::npos);
  const std::string body = unlock_body(who, 5, WorkResult::failed(std::string(4'095, 'x') + "é and more"));
  EXPECT_NE(body.find("\"error\":\"" + std::string(4'095, 'x') + "\""), std::string::npos);
}

TEST(Requests, AResultAndHowLongItCountsTravelWithASuccessAlone) {
  const Requester who{.operation = "once", .resource = "r", .node_id = "n", .request_id = "q"};
  WorkResult work = WorkResult::succeeded("two\nlines", Milliseconds(2'000));
  EXPECT_NE(unlock_body(who, 5, work).find(R"("success":true,"result":"two\u000alines","keep_ms":2000})"),
            std::string::npos);
  EXPECT_NE(unlock_body(who, 5, WorkResult::succeeded({}, Milliseconds(0))).find(R"("keep_ms":0})"),
            std::string::npos);
  work.success = false;
  EXPECT_EQ(unlock_body(who, 5, work).find("result"), std::string::npos);
  EXPECT_EQ(unlock_body(who, 5, WorkResult::succeeded()).find("keep_ms"), std::string::npos);
}

TEST(Answers, ASkipTellsWhoDidItWhenAndWithWhichResultIfTheServerKnows) {
  const auto skip = read_lock(
      R"({"state":"skipped","skip":true,"completed_by":"node-b","completed_ms_ago":180000,"result":"v7"})");
  ASSERT_TRUE(skip);
  EXPECT_EQ(skip->work.node_id, "node-b");
  EXPECT_EQ(skip->work.ago, std::chrono::minutes(3));
  EXPECT_EQ(skip->work.result, "v7");
  const auto old = read_lock(R"({"state":"skipped","skip":true})");
  ASSERT_TRUE(old);
  EXPECT_TRUE(old->work.node_id.empty() && !old->work.ago && old->work.result.empty());
}

TEST(Answers, AReleaseTellsHowLongItCountsAndWhetherItsResultIsKept) {
  const auto cut = read_unlock(R"({"released":true,"keep_ms":604800000,"result_kept":false})");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->keep, std::chrono::hours(24 * 7));
  EXPECT_FALSE(cut->result_kept);
  const auto old = read_unlock(R"({"released":true})");
  EXPECT_TRUE(old && !old->keep && old->result_kept);
  EXPECT_EQ(read_event(R"({"event":"completed","result":"v7"})")->result, "v7");
}

TEST(Requests, QueriesArePercentEncoded) {
  EXPECT_EQ(Target("/x").with("a", "b c&ü").with("empty", "").with("d", "1").take(),
            "/x?a=b%20c%26%c3%bc&d=1");
}

TEST(Requests, ABatchIsSplitAtAThousandCallsAndAtAMebibyte) {
  BatchBodies many;
  for (int i = 0; i < 2001; ++i) many.add("{}");
  const auto by_count = many.take();
  ASSERT_EQ(by_count.size(), 3u);
  EXPECT_EQ(by_count[2].count, 1u);
  BatchBodies large;
  for (int i = 0; i < 3; ++i) large.add(std::string(500 << 10, 'x'));
  const auto by_size = large.take();
  ASSERT_EQ(by_size.size(), 2u);
  for (const auto& body : by_size) EXPECT_LE(body.text.size(), size_t(1) << 20);
}

TEST(Answers, UnknownFieldsAreIgnoredAndWrongTypesAreNotOurs) {
  const auto lock =
      read_lock(R"({"state":"acquired","token":12,"attempt":3,"previous_error":"e","new":[{}]})");
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->token, 12u);
  EXPECT_EQ(lock->attempt, 3u);
  EXPECT_EQ(lock->previous_error, "e");
  for (const char* wrong :
       {R"({"state":"acquired"})", R"({"state":"acquired","token":"12"})", R"({"state":"odd"})",
        R"(["state"])", "<html>", "", R"({"state":"queued","holder":"x"})"}) {
    EXPECT_FALSE(read_lock(wrong)) << wrong;
  }
}

TEST(Answers, NumbersThatCannotBeAreNotOurs) {
  EXPECT_EQ(read_renew(R"({"renewed":true,"lease_ms":86400000})"), Milliseconds(86'400'000));
  EXPECT_FALSE(read_renew(R"({"renewed":true,"lease_ms":9223372036854775807})"));
  EXPECT_FALSE(read_renew(R"({"renewed":true,"lease_ms":18446744073709551615})"));
  EXPECT_FALSE(
      read_renew_batch(R"({"answers":[{"status":200,"renewed":true,"lease_ms":18446744073709551615}]})"));
  const std::string lane = R"({"locks":[{"type":"t","resource_id":"r","state":"idle","queue_length":)";
  EXPECT_TRUE(read_list(lane + "4294967295}]}"));
  EXPECT_FALSE(read_list(lane + "4294967296}]}"));
}

TEST(AnswerParser, TakesAnswersByteByByte) {
  const auto read = [](const std::string& answer) {
    AnswerParser parser;
    for (const char& byte : answer)
      EXPECT_EQ(parser.feed({&byte, 1}),
                &byte == &answer.back() ? AnswerParser::Fed::done : AnswerParser::Fed::more)
          << answer << " at " << &byte - answer.data();
    return parser.take();
  };
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").body, "{}");
  EXPECT_EQ(read("HTTP/1.1 204 None\r\n\r\n").status, 204);
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(read(chunked + "0\r\n\r\n").status, 200);
  EXPECT_EQ(read(chunked + "1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n").body, "abc");
}

TEST(AnswerParser, AQuotedTextOfAChunkThatRunsOverItsLineIsAFaultInWhateverPiecesItComes) {
  const std::string_view head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string_view chunk = "FFFFFF;a=\"b\r\n";  // a quarter of what a body may have
  AnswerParser whole;
  EXPECT_EQ(whole.feed(std::string(head) + std::string(chunk) + "some more"), AnswerParser::Fed::wrong);
  AnswerParser pieces;
  ASSERT_EQ(pieces.feed(head), AnswerParser::Fed::more);
  for (const char& byte : chunk)
    ASSERT_EQ(pieces.feed(std::string_view(&byte, 1)),
              &byte == &chunk.back() ? AnswerParser::Fed::wrong : AnswerParser::Fed::more);
  AnswerParser good;
  EXPECT_EQ(good.feed(std::string(head) + "2;a=\"b\"\r\n{}\r\n0;a=\"b\"\r\n\r\n"), AnswerParser::Fed::done);
}

TEST(AnswerParser, ATimeToWaitThatRunsOverWhenItIsCountedInMillisecondsIsADay) {
  const auto wait_of = [](const std::string& seconds) {
    AnswerParser parser;
    const std::string answer =
        "HTTP/1.1 503 Busy\r\nRetry-After: " + seconds + "\r\nContent-Length: 0\r\n\r\n";
    EXPECT_EQ(parser.feed(answer), AnswerParser::Fed::done);
    return parser.take().retry_after;
  };
  using std::chrono::seconds;
  EXPECT_EQ(wait_of("2"), seconds(2));
  EXPECT_EQ(wait_of("9223372036854775807"), seconds(86'400));
  EXPECT_EQ(wait_of("soon"), std::nullopt);
}

TEST(Answers, AStatusIsReadWhole) {
  const auto status = read_status(
      R"({"type":"pull","resource_id":"r","state":"held","holder":{"node_id":"a","request_id":"q","token":4,)"
      R"("since":"s","lease_ms":10,"done":1,"total":2,"info":"i"},"queue":[{"node_id":"b","position":1,"since":"t"}],)"
      R"("queue_length":2000,"completion":{"node_id":"c","success":false,"error":"e","permanent":true,)"
      R"("completed_at":"u"},"references":{"count":2,"nodes":["x","y"]},"waiters":["b"],"acquired":false,)"
      R"("completed":false,"success":false,"error":"","position":1})");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->lane.holder->done, 1u);
  EXPECT_EQ(status->lane.queue_length, 2000u);
  EXPECT_EQ(status->lane.queue.at(0).node_id, "b");
  EXPECT_TRUE(status->lane.completion->permanent);
  EXPECT_EQ(status->lane.references, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(status->position, 1u);
}

TEST(ServerUrl, TakesThreeFormsAndNothingElse) {
  EXPECT_EQ(parse_server_url("http://h:1/")->base, "http://h:1");
  EXPECT_TRUE(parse_server_url("https://h")->tls);
  EXPECT_EQ(parse_server_url("unix:/run/x.sock")->socket_path, "/run/x.sock");
  for (const char* wrong : {"", "h:1", "ftp://h", "http://", "http://:1", "http://u@h", "http://h?x",
                            "unix:", "http://h\r\nX: y", "http:// h"}) {
    EXPECT_FALSE(parse_server_url(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace turnstile::client
