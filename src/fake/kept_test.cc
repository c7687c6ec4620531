// Work that is done once, as it looks on the wires of the fake: the rules themselves (S37 to S40) are tested
// with the engine. Raw exchanges, so that what is sent and answered is seen as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fake/service.h"

namespace turnstile::fake {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

class Kept : public testing::Test {
 protected:
  // The body of the answer; a status other than 200 comes first.
  std::string post(std::string_view target, std::string_view body) {
    const auto answer = transport_->exchange({.post = true, .target = target, .body = body});
    if (!answer) return answer.error().message;
    return answer->status == 200 ? answer->body : std::to_string(answer->status) + answer->body;
  }
  std::string lock(const std::string& node) {
    return post("/lock", R"({"type":"once","resource_id":"nightly","node_id":")" + node + "\"}");
  }
  std::string unlock(const std::string& node, const std::string& more) {
    return post("/unlock",
                R"({"type":"once","resource_id":"nightly","node_id":")" + node + "\"," + more + "}");
  }
  std::string status() { return post("/lock/status", R"({"type":"once","resource_id":"nightly"})"); }

  std::shared_ptr<Service> service_ = make_service({});
  std::shared_ptr<client::Transport> transport_ = connect(service_);
};

TEST_F(Kept, S38_ASuccessCountsForKeepMs) {
  EXPECT_THAT(lock("a"), HasSubstr(R"("acquired":true)"));
  EXPECT_THAT(unlock("a", R"("keep_ms":72000000,"result":"built v7")"), HasSubstr(R"("keep_ms":72000000)"));
  service_->advance(19h);
  const std::string skipped = lock("b");
  EXPECT_THAT(skipped, HasSubstr(R"("skip":true)"));
  EXPECT_THAT(skipped, HasSubstr(R"("completed_by":"a","completed_ms_ago":684)"));
  EXPECT_THAT(skipped, HasSubstr(R"("result":"built v7")"));
  EXPECT_THAT(status(), HasSubstr(R"("result":"built v7")"));
  service_->advance(1h);
  EXPECT_THAT(lock("b"), HasSubstr(R"("acquired":true)"));
}

TEST_F(Kept, S39_AnOldClientSeesNothingNewInItsOwnAnswers) {
  lock("a");
  EXPECT_EQ(unlock("a", R"("success":true)"),
            R"({"released":true,"message":"the lock is released","waiters":[]})");
  EXPECT_THAT(lock("b"), Not(HasSubstr("result")));
}

TEST_F(Kept, S39_ALongResultIsRefusedAndTheHoldIsStillHeld) {
  lock("a");
  const std::string result(4097, 'x');
  EXPECT_THAT(unlock("a", R"("result":")" + result + "\""),
              HasSubstr(R"(400{"error":"\"result\" is 4097 bytes long: at most 4096 are allowed")"));
  EXPECT_THAT(status(), HasSubstr(R"("state":"held")"));
}

TEST_F(Kept, S38_ItComesByABatchToo) {
  lock("a");
  const std::string item =
      R"({"call":"unlock","type":"once","resource_id":"nightly","node_id":"a","keep_ms":2000,"result":"r"})";
  EXPECT_THAT(post("/batch", R"({"requests":[)" + item + "]}"), HasSubstr(R"("keep_ms":2000)"));
  EXPECT_THAT(lock("b"), HasSubstr(R"("result":"r")"));
  service_->advance(2s);
  EXPECT_THAT(lock("b"), HasSubstr(R"("acquired":true)"));
}

TEST_F(Kept, S40_AForgottenSuccessIsDoneAgain) {
  lock("a");
  unlock("a", R"("keep_ms":3600000)");
  EXPECT_EQ(post("/admin/forget", R"({"type":"once","resource_id":"nightly"})"), R"({"forgotten":true})");
  EXPECT_EQ(post("/admin/forget", R"({"type":"once","resource_id":"nightly"})"), R"({"forgotten":false})");
  EXPECT_THAT(lock("b"), HasSubstr(R"("acquired":true)"));
}

}  // namespace
}  // namespace turnstile::fake
