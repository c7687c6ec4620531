// Exit codes: numbers that scripts depend on.
#include "cli/exit_code.h"

#include <gtest/gtest.h>

namespace turnstile::cli {
namespace {

TEST(ExitCode, EveryErrorHasTheDocumentedNumber) {
  EXPECT_EQ(exit_code_of(ErrorCode::invalid), 2);
  EXPECT_EQ(exit_code_of(ErrorCode::busy), 11);
  EXPECT_EQ(exit_code_of(ErrorCode::timed_out), 11);
  EXPECT_EQ(exit_code_of(ErrorCode::cancelled), 1);
  EXPECT_EQ(exit_code_of(ErrorCode::refused), 12);
  EXPECT_EQ(exit_code_of(ErrorCode::failed), 12);
  EXPECT_EQ(exit_code_of(ErrorCode::lost), 13);
  EXPECT_EQ(exit_code_of(ErrorCode::unavailable), 14);
  EXPECT_EQ(exit_code_of(ErrorCode::not_turnstile), 14);
  EXPECT_EQ(exit_code_of(ErrorCode::unauthenticated), 15);
  EXPECT_EQ(exit_code_of(ErrorCode::storage), 1);
}

TEST(ExitCode, AnErrorIsOneLineAndSaysWhoIsInTheWay) {
  testing::internal::CaptureStderr();
  const int code = report(Output::text, ClientError{.code = ErrorCode::refused,
                                                    .message = "it is\nreferenced",
                                                    .reason = "referenced",
                                                    .nodes = {"a", "b"}});
  EXPECT_EQ(code, 12);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "turnstile: it is referenced (by a, b)\n");
}

TEST(ExitCode, AWaitThatWasTooShortSaysHowToWaitLonger) {
  testing::internal::CaptureStderr();
  report(Output::text,
         ClientError{.code = ErrorCode::timed_out, .message = "too late", .reason = "", .nodes = {}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "turnstile: too late; to wait longer: --wait\n");
}

TEST(ExitCode, AnErrorAsJsonHasTheServersOwnCode) {
  testing::internal::CaptureStderr();
  report(Output::json,
         ClientError{.code = ErrorCode::lost, .message = "say \"no\"", .reason = "stale_token", .nodes = {}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "{\"error\":\"say \\\"no\\\"\",\"code\":\"stale_token\",\"exit\":13}\n");
}

}  // namespace
}  // namespace turnstile::cli
