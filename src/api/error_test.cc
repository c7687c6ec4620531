#include "api/error.h"

#include <set>

#include "api/test_body.h"

namespace turnstile {
namespace {

TEST(ErrorTable, EveryCodeHasItsStatus) {
  const struct {
    ErrorCode code;
    const char* text;
    unsigned status;
  } cases[] = {
      {ErrorCode::invalid, "invalid", 400},
      {ErrorCode::unauthorized, "unauthorized", 401},
      {ErrorCode::forbidden, "forbidden", 403},
      {ErrorCode::foreign_origin, "foreign_origin", 403},
      {ErrorCode::busy, "busy", 403},
      {ErrorCode::referenced, "referenced", 403},
      {ErrorCode::failed, "failed", 403},
      {ErrorCode::not_held, "not_held", 403},
      {ErrorCode::not_holder, "not_holder", 403},
      {ErrorCode::stale_token, "stale_token", 403},
      {ErrorCode::references_off, "references_off", 403},
      {ErrorCode::unknown_path, "unknown_path", 404},
      {ErrorCode::method_not_allowed, "method_not_allowed", 405},
      {ErrorCode::timeout, "timeout", 408},
      {ErrorCode::too_large, "too_large", 413},
      {ErrorCode::queue_full, "queue_full", 429},
      {ErrorCode::too_many_requests, "too_many_requests", 429},
      {ErrorCode::headers_too_large, "headers_too_large", 431},
      {ErrorCode::not_leader, "not_leader", 307},
      {ErrorCode::no_leader, "no_leader", 503},
      {ErrorCode::outcome_unknown, "outcome_unknown", 503},
      {ErrorCode::store_unavailable, "store_unavailable", 503},
      {ErrorCode::shutting_down, "shutting_down", 503},
  };
  ASSERT_EQ(std::size(cases), kErrorCodes);
  std::set<std::string> sentences;
  for (const auto& [code, text, status] : cases) {
    const ApiError error = make_error(code);
    EXPECT_EQ(error.code, text);
    EXPECT_EQ(error.status, status) << text;
    EXPECT_TRUE(sentences.insert(error.message).second) << text << ": a sentence of its own";
    EXPECT_EQ(error.headers.contains("Retry-After: "), status == 503) << text;
    std::string out;
    append_error_json(out, error);
    const Parsed parsed(out);
    EXPECT_EQ(parsed.text("/code"), text);
    EXPECT_EQ(parsed.text("/error"), error.message);
  }
}

TEST(ErrorTable, TheHeadersThatAStatusDemandsAreThere) {
  EXPECT_EQ(make_error(ErrorCode::unauthorized).headers, "WWW-Authenticate: Bearer realm=\"turnstile\"\r\n");
  EXPECT_EQ(make_error(ErrorCode::no_leader, "x").headers, "Retry-After: 1\r\n");
  EXPECT_EQ(make_error(ErrorCode::invalid).headers, "");
}

TEST(ErrorTable, EveryRefusalOfTheEngineHasACode) {
  const struct {
    Refusal refusal;
    ErrorCode code;
  } cases[] = {
      {Refusal::busy, ErrorCode::busy},
      {Refusal::referenced, ErrorCode::referenced},
      {Refusal::failed, ErrorCode::failed},
      {Refusal::queue_full, ErrorCode::queue_full},
      {Refusal::not_held, ErrorCode::not_held},
      {Refusal::not_holder, ErrorCode::not_holder},
      {Refusal::stale_token, ErrorCode::stale_token},
      {Refusal::references_off, ErrorCode::references_off},
      {Refusal::too_many_operations, ErrorCode::too_many_requests},
  };
  for (const auto& [refusal, code] : cases) EXPECT_EQ(error_of(refusal), code);
}

TEST(ErrorTable, ErrorsOfTheHttpLayerFindTheirCodeByStatus) {
  EXPECT_EQ(error_of_http_status(400), ErrorCode::invalid);
  EXPECT_EQ(error_of_http_status(408), ErrorCode::timeout);
  EXPECT_EQ(error_of_http_status(413), ErrorCode::too_large);
  EXPECT_EQ(error_of_http_status(429), ErrorCode::too_many_requests);
  EXPECT_EQ(error_of_http_status(431), ErrorCode::headers_too_large);
  EXPECT_EQ(error_of_http_status(503), ErrorCode::shutting_down);
  EXPECT_EQ(error_of_http_status(505), ErrorCode::invalid);
}

TEST(ErrorTable, AnErrorIsJsonWhateverItsSentenceHolds) {
  std::string out;
  append_error_json(out, make_error(ErrorCode::invalid, "a \"quote\"\n"));
  EXPECT_EQ(out, R"({"error":"a \"quote\"\n","code":"invalid"})");
  out.clear();
  append_error_json(out, make_error(ErrorCode::invalid, "x"), AnswerForm::in_batch);
  EXPECT_EQ(out, R"({"status":400,"error":"x","code":"invalid"})");
}

}  // namespace
}  // namespace turnstile
