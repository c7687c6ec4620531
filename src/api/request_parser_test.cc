// Bodies of single calls: what is taken, what is refused, and what the refusal names (S1, S9).
#include "api/request_parser.h"

#include <gmock/gmock.h>

#include "api/test_body.h"

namespace turnstile {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::string_view kNames = R"("type":"pull","resource_id":"sha256:ab","node_id":"n1")";

std::string with(std::string_view more) { return "{" + std::string(kNames) + "," + std::string(more) + "}"; }
std::string plain() { return "{" + std::string(kNames) + "}"; }

class RequestParserTest : public testing::Test {
 protected:
  // Each keeps the body alive, because what is parsed points into it.
  ApiResult<LockRequest> lock(std::string_view text) { return parser_.parse_lock(keep(text)); }
  ApiResult<UnlockCommand> unlock(std::string_view text) { return parser_.parse_unlock(keep(text)); }
  ApiResult<RenewCommand> renew(std::string_view text) { return parser_.parse_renew(keep(text)); }

  std::string_view keep(std::string_view text) {
    body_.emplace(text);
    return body_->view();
  }
  // The sentence with which a lock body is refused; empty if it is not.
  std::string lock_fault(std::string_view text) { return fault(lock(text)); }

  template <class T>
  static std::string fault(const ApiResult<T>& result) {
    if (result) return {};
    EXPECT_EQ(result.error().status, 400u);
    EXPECT_EQ(result.error().code, "invalid");
    EXPECT_FALSE(result.error().message.empty());
    return result.error().message;
  }

  RequestParser parser_;
  std::optional<Body> body_;
};

TEST_F(RequestParserTest, ASeedsClientLocksWithThreeFields) {
  const auto request = lock(plain());
  ASSERT_TRUE(request) << request.error().message;
  const LockCommand& command = request->command;
  EXPECT_EQ(command.lane, (LaneName{OperationName("pull"), ResourceId("sha256:ab")}));
  EXPECT_EQ(command.who, (Requester{NodeId("n1"), RequestId()}));
  EXPECT_FALSE(command.scope || command.lease || command.monitor || command.dereference);
  EXPECT_EQ(command.info, "");
  EXPECT_EQ(command.poll, PollId::none);
  EXPECT_EQ(command.bond, BondId::none);
  EXPECT_EQ(request->wait, milliseconds(0));
}

TEST_F(RequestParserTest, EveryFieldOfLockArrives) {
  const auto request = lock(with(R"("request_id":"r","scope":"resource","wait_ms":1500,"lease_ms":30000,
      "monitor":true,"dereference":true,"info":"line 1\nline 2")"));
  ASSERT_TRUE(request) << request.error().message;
  const LockCommand& command = request->command;
  EXPECT_EQ(command.who.request, RequestId("r"));
  EXPECT_EQ(command.scope, Scope::resource);
  EXPECT_EQ(command.lease, milliseconds(30000));
  EXPECT_EQ(command.monitor, true);
  EXPECT_TRUE(command.dereference);
  EXPECT_EQ(command.info, "line 1\nline 2");
  EXPECT_EQ(request->wait, milliseconds(1500));
  EXPECT_EQ(lock(with(R"("monitor":false)"))->command.monitor, false) << "false is not the same as absent";
  EXPECT_EQ(lock(with(R"("scope":"operation")"))->command.scope, Scope::operation);
}

TEST_F(RequestParserTest, S1_BodiesThatAreNotOneJsonObjectAreRefused) {
  for (const std::string& bad : {std::string(""),
                                 std::string(" "),
                                 std::string("null"),
                                 std::string("[]"),
                                 std::string("\"x\""),
                                 std::string("7"),
                                 std::string("{"),
                                 std::string("{}}"),
                                 plain() + "x",
                                 plain() + plain(),
                                 plain() + ",",
                                 plain() + std::string(1, '\0'),
                                 with("\"unknown\":tru"),
                                 with("\"unknown\":01"),
                                 with("\"unknown\":\"\\x\""),
                                 with("\"unknown\":[1,]"),
                                 with("\"unknown\":{\"a\" 1}"),
                                 with("\"unknown\":\"a\tb\""),
                                 with("\"info\":\"\xff\""),
                                 with("\"info\":\"\xc0\xaf\""),
                                 with("\"info\":\"\xed\xa0\x80\""),
                                 with("\"info\":\"\\ud800\""),
                                 with("\"info\":\"\\udc00\""),
                                 with("'info':1")})
    EXPECT_NE(lock_fault(bad), "") << bad;
}

TEST_F(RequestParserTest, WhiteSpaceAroundTheObjectIsAllowed) {
  EXPECT_EQ(lock_fault(" \r\n\t" + plain() + " \r\n\t"), "");
}

TEST_F(RequestParserTest, UnknownFieldsAndNullAreIgnored) {
  EXPECT_EQ(lock_fault(with(R"("x":{"type":1,"y":[1,2,{}]},"x":1,"token":"no number","done":-1)")), "")
      << "fields of other calls are unknown to this one";
  const auto request =
      lock(with(R"("request_id":null,"scope":null,"wait_ms":null,"lease_ms":null,"monitor":null,
      "dereference":null,"info":null)"));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_FALSE(request->command.monitor);
  EXPECT_TRUE(request->command.who.request.empty());
}

TEST_F(RequestParserTest, AnEmptyOptionalStringCountsAsAbsent) {
  const auto request = lock(with(R"("request_id":"","scope":"","info":"")"));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_FALSE(request->command.scope);
}

TEST_F(RequestParserTest, S1_AKnownFieldTwiceIsRefusedEvenIfOneIsNull) {
  for (const char* again :
       {R"("node_id":"n1")", R"("node_id":null)", R"("node_id":"")", R"("node\u005fid":"n2")"})
    EXPECT_THAT(lock_fault(with(again)), HasSubstr("\"node_id\" occurs twice")) << again;
  EXPECT_THAT(lock_fault(with(R"("info":null,"info":"x")")), HasSubstr("\"info\" occurs twice"));
  EXPECT_THAT(lock_fault(with(R"("monitor":true,"monitor":true)")), HasSubstr("\"monitor\" occurs twice"));
}

TEST_F(RequestParserTest, S1_AMissingOrEmptyRequiredFieldIsNamed) {
  for (const std::string field : {"type", "resource_id", "node_id"}) {
    std::string body = "{";
    for (const std::string other : {"type", "resource_id", "node_id"})
      if (other != field) body += "\"" + other + "\":\"x\",";
    for (const std::string& rest :
         {std::string("\"z\":0}"), "\"" + field + "\":null}", "\"" + field + "\":\"\"}"})
      EXPECT_THAT(lock_fault(body + rest), HasSubstr("\"" + field + "\" is missing or empty"));
  }
}

TEST_F(RequestParserTest, S1_AFieldOfTheWrongTypeIsNamed) {
  const struct {
    const char* field;
    std::vector<const char*> bad;
  } cases[] = {
      {"request_id", {"1", "true", "[]", "{}", "1.5"}},
      {"scope", {"1", "\"both\"", "\"Operation\"", "true"}},
      {"info", {"1", "[\"x\"]"}},
      {"wait_ms", {"\"1\"", "1.0", "1e3", "-1", "true", "[]"}},
      {"lease_ms", {"\"1000\"", "1000.5", "1e3", "-1000", "true", "\"\""}},
      {"monitor", {"1", "\"true\"", "0", "[]"}},
      {"dereference", {"1", "\"yes\""}},
  };
  for (const auto& [field, bad] : cases)
    for (const char* value : bad)
      EXPECT_THAT(lock_fault(with("\"" + std::string(field) + "\":" + value)), HasSubstr(field)) << value;
  EXPECT_THAT(lock_fault(R"({"type":1,"resource_id":"r","node_id":"n"})"),
              HasSubstr("\"type\" must be a string"));
}

TEST_F(RequestParserTest, S1_ControlCharactersInNamesAreRefused) {
  for (const std::string field : {"type", "resource_id", "node_id", "request_id"})
    for (const char* bad : {"\\u0000", "\\u0001", "\\n", "\\t", "\\r", "\\u001f", "\\u007f", "\x7f"})
      for (const std::string around : {"", "x", "1234567", "12345678", "a longer text, over many bytes"}) {
        std::string body = "{";
        for (const std::string other : {"type", "resource_id", "node_id", "request_id"})
          body += "\"" + other + "\":\"" + (other == field ? around + bad + around : "x") + "\",";
        body += "\"z\":0}";
        EXPECT_THAT(lock_fault(body), HasSubstr("\"" + field + "\" contains a control character")) << body;
      }
}

TEST_F(RequestParserTest, NamesMayHoldEverythingElse) {
  const auto request =
      lock(R"({"type":"a:b","resource_id":"\u00e9/% \"\\ \ud83d\ude00","node_id":"нода 1"})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->command.lane.resource.text, "é/% \"\\ 😀");
  EXPECT_EQ(request->command.who.node.text, "нода 1");
}

TEST_F(RequestParserTest, S1_ATextOneByteTooLongIsRefusedAndTheLimitNamed) {
  const struct {
    std::string field;
    size_t longest;
  } cases[] = {{"type", 64}, {"resource_id", 1024}, {"node_id", 256}, {"request_id", 256}, {"info", 4096}};
  for (const auto& [field, longest] : cases)
    for (const size_t size : {longest, longest + 1}) {
      std::string body = "{";
      for (const std::string name : {"type", "resource_id", "node_id", "request_id", "info"})
        body += "\"" + name + "\":\"" + std::string(name == field ? size : 1, 'x') + "\",";
      body += "\"z\":0}";
      if (size == longest)
        EXPECT_EQ(lock_fault(body), "");
      else
        EXPECT_THAT(lock_fault(body), testing::AllOf(HasSubstr(field), HasSubstr(std::to_string(longest))));
    }
}

TEST_F(RequestParserTest, AWaitIsCutToTheLongestAndALeaseOutsideItsRangeIsRefused) {
  EXPECT_EQ(lock(with(R"("wait_ms":600000)"))->wait, milliseconds(600'000));
  EXPECT_EQ(lock(with(R"("wait_ms":600001)"))->wait, milliseconds(600'000));
  EXPECT_EQ(lock(with(R"("wait_ms":9007199254740991)"))->wait, milliseconds(600'000));
  EXPECT_EQ(lock(with(R"("wait_ms":0)"))->wait, milliseconds(0));
  for (const char* good : {"100", "86400000"})
    EXPECT_EQ(lock_fault(with("\"lease_ms\":" + std::string(good))), "");
  for (const char* bad : {"0", "99", "86400001", "18446744073709551615"})
    EXPECT_THAT(lock_fault(with("\"lease_ms\":" + std::string(bad))),
                HasSubstr("\"lease_ms\" must be from 100 to 86400000"));
}

TEST_F(RequestParserTest, S1_ANumberOutsideItsRangeIsRefusedAndTheRangeNamed) {
  const std::string to_the_top = " to 9007199254740991";
  const auto range_told = [](const std::string& field, const std::string& range) {
    return testing::StartsWith("\"" + field + "\" must be from " + range);
  };
  for (const char* bad : {"-1", "-9223372036854775808", "9007199254740992", "18446744073709551615"}) {
    const auto with_bad = [bad](std::string field) { return with("\"" + field + "\":" + bad); };
    EXPECT_THAT(lock_fault(with_bad("wait_ms")), range_told("wait_ms", "0" + to_the_top)) << bad;
    EXPECT_THAT(lock_fault(with_bad("lease_ms")), range_told("lease_ms", "100 to 86400000")) << bad;
    EXPECT_THAT(fault(unlock(with_bad("token"))), range_told("token", "0" + to_the_top)) << bad;
    EXPECT_THAT(fault(renew(with_bad("token"))), range_told("token", "1" + to_the_top)) << bad;
    for (const std::string field : {"done", "total"})
      EXPECT_THAT(fault(renew(with_bad("token\":7,\"" + field))), range_told(field, "0" + to_the_top)) << bad;
  }
  EXPECT_THAT(fault(renew(with(R"("token":0)"))), range_told("token", "1" + to_the_top));
  EXPECT_EQ(fault(renew(with(R"("token":1,"done":9007199254740991,"total":0)"))), "");
  EXPECT_EQ(lock(with(R"("wait_ms":-0)"))->wait, milliseconds(0)) << "an integer, and not below 0";
}

TEST_F(RequestParserTest, S1_ANumberThatIsNoIntegerOrBeyond64BitsIsToldSo) {
  for (const char* bad : {"1.0", "1e3", "0.5", "-1.5", "\"1\"", "true", "[1]", "1E400"})
    for (const std::string field : {"wait_ms", "lease_ms"})
      EXPECT_THAT(lock_fault(with("\"" + field + "\":" + bad)),
                  testing::AnyOf("\"" + field + "\" must be an integer, without quotes, fraction or exponent",
                                 HasSubstr("an integer beyond 64 bits")))
          << bad;
  for (const char* bad : {"18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"})
    EXPECT_THAT(lock_fault(with("\"unknown\":" + std::string(bad))), HasSubstr("an integer beyond 64 bits"));
}

TEST_F(RequestParserTest, LimitsAreSettings) {
  ApiLimits limits;
  limits.type = 2;
  limits.wait_max = milliseconds(5);
  RequestParser parser(limits);
  EXPECT_FALSE(parser.parse_lock(keep(plain())));
  EXPECT_EQ(parser.parse_lock(keep(R"({"type":"x","resource_id":"r","node_id":"n","wait_ms":6})"))->wait,
            milliseconds(5));
}

TEST_F(RequestParserTest, S9_SuccessIsWhatIsSaidElseThatTheErrorIsEmpty) {
  const struct {
    const char* more;
    bool success;
    const char* error;
    bool permanent;
  } cases[] = {
      {R"("z":0)", true, "", false},
      {R"("error":"")", true, "", false},
      {R"("error":null)", true, "", false},
      {R"("error":"disk full")", false, "disk full", false},
      {R"("success":true)", true, "", false},
      {R"("success":false)", false, "", false},
      {R"("success":null,"error":"x")", false, "x", false},
      {R"("success":true,"error":"a warning")", true, "", false},
      {R"("success":false,"error":"x","permanent":true)", false, "x", true},
      {R"("success":true,"permanent":true)", true, "", false},
  };
  for (const auto& [more, success, error, permanent] : cases) {
    const auto command = unlock(with(more));
    ASSERT_TRUE(command) << more << command.error().message;
    EXPECT_EQ(command->success, success) << more;
    EXPECT_EQ(command->error, error) << more;
    EXPECT_EQ(command->permanent, permanent) << more;
  }
}

TEST_F(RequestParserTest, ATokenIsAnIntegerBelowTwoToThe53) {
  EXPECT_EQ(unlock(plain())->token, Token::none);
  EXPECT_EQ(unlock(with(R"("token":0)"))->token, Token::none);
  EXPECT_EQ(unlock(with(R"("token":9007199254740991)"))->token, Token(9007199254740991));
  for (const char* bad :
       {"9007199254740992", "18446744073709551615", "-1", "1.5", "1.0", "1e3", "\"7\"", "true", "[7]"})
    EXPECT_THAT(fault(unlock(with("\"token\":" + std::string(bad)))), HasSubstr("token")) << bad;
  EXPECT_NE(fault(unlock(with(R"("token":18446744073709551616)"))), "") << "not even a 64-bit number";
}

TEST_F(RequestParserTest, S1_UnlockRefusesWrongTypesAndLongErrors) {
  for (const char* bad : {R"("success":1)", R"("success":"true")", R"("error":5)", R"("permanent":"x")"})
    EXPECT_NE(fault(unlock(with(bad))), "") << bad;
  EXPECT_EQ(fault(unlock(with("\"error\":\"" + std::string(4096, 'e') + "\""))), "");
  EXPECT_THAT(fault(unlock(with("\"error\":\"" + std::string(4097, 'e') + "\""))), HasSubstr("4096"));
  EXPECT_THAT(fault(unlock(R"({"error":"x"})")), HasSubstr("type")) << "an error alone names no lock";
}

TEST_F(RequestParserTest, S38_KeepMsIsAnyNumberOfMilliseconds) {
  EXPECT_FALSE(unlock(plain())->keep);
  EXPECT_EQ(unlock(with(R"("keep_ms":0)"))->keep, Duration(0)) << "said outright, it is not the default";
  EXPECT_EQ(unlock(with(R"("keep_ms":72000000)"))->keep, Duration(std::chrono::hours(20)));
  EXPECT_EQ(unlock(with(R"("keep_ms":9007199254740991)"))->keep, milliseconds(9007199254740991));
  for (const char* bad : {"9007199254740992", "-1", "1.5", "\"20h\"", "true"})
    EXPECT_THAT(fault(unlock(with("\"keep_ms\":" + std::string(bad)))), HasSubstr("keep_ms")) << bad;
}

TEST_F(RequestParserTest, S39_AResultIsATextOfAtMost4096Bytes) {
  EXPECT_EQ(unlock(with(R"("result":"line 1\nline 2\u0000")"))->result,
            std::string_view("line 1\nline 2\0", 14));
  EXPECT_EQ(unlock(with(R"("result":"")"))->result, "");
  EXPECT_EQ(unlock(with("\"result\":\"" + std::string(4096, 'r') + "\""))->result.size(), 4096u);
  EXPECT_THAT(fault(unlock(with("\"result\":\"" + std::string(4097, 'r') + "\""))),
              R"("result" is 4097 bytes long: at most 4096 are allowed)");
  EXPECT_THAT(fault(unlock(with("\"result\":\"\xff\""))), HasSubstr("UTF-8"));
  EXPECT_THAT(fault(unlock(with(R"("result":{"a":1})"))), HasSubstr("must be a string"));
}

TEST_F(RequestParserTest, S38_AFailureKeepsNothingButItsFieldsAreCheckedAllTheSame) {
  const auto failed = unlock(with(R"("error":"x","keep_ms":5,"result":"r")"));
  ASSERT_TRUE(failed);
  EXPECT_FALSE(failed->keep);
  EXPECT_EQ(failed->result, "");
  EXPECT_NE(fault(unlock(with(R"("error":"x","keep_ms":-1)"))), "");
}

TEST_F(RequestParserTest, RenewNeedsATokenAndCarriesProgress) {
  const auto command = renew(with(R"("token":7,"lease_ms":2000,"done":10,"total":5,"request_id":"r")"));
  ASSERT_TRUE(command) << command.error().message;
  EXPECT_EQ(command->token, Token(7));
  EXPECT_EQ(command->lease, milliseconds(2000));
  EXPECT_EQ(command->progress, (Progress{10, 5}));
  EXPECT_EQ(command->who.request, RequestId("r"));
  EXPECT_FALSE(renew(with(R"("token":7)"))->progress);
  EXPECT_EQ(renew(with(R"("token":7,"done":3)"))->progress, (Progress{3, 0}));
  EXPECT_THAT(fault(renew(plain())), HasSubstr("\"token\" is missing"));
  EXPECT_THAT(fault(renew(with(R"("token":null)"))), HasSubstr("\"token\" is missing"));
  EXPECT_THAT(fault(renew(with(R"("token":0)"))), HasSubstr("token"));
  for (const char* bad : {R"("done":-1)", R"("done":1.5)", R"("total":9007199254740992)", R"("lease_ms":1)"})
    EXPECT_NE(fault(renew(with("\"token\":7," + std::string(bad)))), "") << bad;
}

TEST_F(RequestParserTest, CancelAndStatusNameALaneAndARequester) {
  const auto cancel = parser_.parse_cancel(keep(with(R"("request_id":"r")")));
  ASSERT_TRUE(cancel);
  EXPECT_EQ(cancel->who, (Requester{NodeId("n1"), RequestId("r")}));
  EXPECT_THAT(fault(parser_.parse_cancel(keep(R"({"type":"t","resource_id":"r"})"))), HasSubstr("node_id"));

  const auto nobody = parser_.parse_status(keep(R"({"type":"t","resource_id":"r"})"));
  ASSERT_TRUE(nobody);
  EXPECT_TRUE(nobody->who.node.empty());
  EXPECT_EQ(parser_.parse_status(keep(plain()))->who.node, NodeId("n1"));
  EXPECT_THAT(fault(parser_.parse_status(keep(R"({"type":"t","resource_id":"r","request_id":"q"})"))),
              HasSubstr("names nobody"));
  EXPECT_THAT(fault(parser_.parse_status(keep(R"({"type":"t"})"))), HasSubstr("resource_id"));
}

TEST_F(RequestParserTest, BreakNeedsAReason) {
  const auto command =
      parser_.parse_break(keep(R"({"type":"t","resource_id":"r","reason":"stuck\nsince noon"})"));
  ASSERT_TRUE(command);
  EXPECT_EQ(command->reason, "stuck\nsince noon");
  EXPECT_THAT(fault(parser_.parse_break(keep(R"({"type":"t","resource_id":"r"})"))), HasSubstr("reason"));
  EXPECT_THAT(fault(parser_.parse_break(
                  keep(R"({"type":"t","resource_id":"r","reason":")" + std::string(4097, 'x') + "\"}"))),
              HasSubstr("4096"));
}

TEST_F(RequestParserTest, ReferenceCallsNameAResourceAndANode) {
  const auto command = parser_.parse_reference(keep(R"({"resource_id":"r","node_id":"n"})"));
  ASSERT_TRUE(command);
  EXPECT_EQ(command->resource, ResourceId("r"));
  EXPECT_EQ(command->node, NodeId("n"));
  EXPECT_THAT(fault(parser_.parse_reference(keep(R"({"resource_id":"r"})"))), HasSubstr("node_id"));
  EXPECT_THAT(fault(parser_.parse_reference(keep(R"({"node_id":"n"})"))), HasSubstr("resource_id"));
  EXPECT_EQ(*parser_.parse_release_node(keep(R"({"node_id":"n"})")), NodeId("n"));
  EXPECT_THAT(fault(parser_.parse_release_node(keep(R"({"resource_id":"r"})"))), HasSubstr("node_id"));
}

TEST_F(RequestParserTest, ABodyLargerThanAllBeforeIsParsedToo) {
  const std::string large = with("\"z\":\"" + std::string(300'000, 'z') + "\"");
  EXPECT_EQ(lock_fault(large), "");
  EXPECT_EQ(lock_fault(plain()), "");
}

}  // namespace
}  // namespace turnstile
