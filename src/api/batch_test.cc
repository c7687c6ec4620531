// POST /batch: many requests in one body, each judged by itself.
#include <gmock/gmock.h>

#include "api/test_body.h"

namespace turnstile {
namespace {

using testing::HasSubstr;

TEST(Batch, EachCallBecomesItsCommandInOrder) {
  RequestParser parser;
  const Body body(R"({"requests":[
      {"call":"lock","type":"pull","resource_id":"a","node_id":"n","lease_ms":1000,"scope":"resource"},
      {"type":"pull","resource_id":"b","node_id":"n","error":"e","call":"unlock"},
      {"call":"renew","type":"pull","resource_id":"c","node_id":"n","token":5},
      {"call":"cancel","type":"pull","resource_id":"d","node_id":"n"},
      {"call":"refs/add","type":7,"resource_id":"e","node_id":"n"},
      {"call":"refs/release","resource_id":"f","node_id":"m"}]})");
  ASSERT_EQ(parser.parse_batch(body.view()), size_t(6));
  const BatchItem first = parser.next_in_batch(), second = parser.next_in_batch(),
                  third = parser.next_in_batch(), fourth = parser.next_in_batch(),
                  fifth = parser.next_in_batch(), sixth = parser.next_in_batch();
  // Views of the first item are still good after the last was read.
  EXPECT_EQ(std::get<LockCommand>(first).lane.resource, ResourceId("a"));
  EXPECT_EQ(std::get<LockCommand>(first).scope, Scope::resource);
  EXPECT_EQ(std::get<UnlockCommand>(second).error, "e");
  EXPECT_FALSE(std::get<UnlockCommand>(second).success);
  EXPECT_EQ(std::get<RenewCommand>(third).token, Token(5));
  EXPECT_EQ(std::get<CancelCommand>(fourth).lane.resource, ResourceId("d"));
  EXPECT_EQ(std::get<AddReferenceCommand>(fifth).resource, ResourceId("e"));
  EXPECT_EQ(std::get<ReleaseReferenceCommand>(sixth).resource, ResourceId("f"));
  EXPECT_EQ(std::get<ReleaseReferenceCommand>(sixth).node, NodeId("m"));
}

TEST(Batch, S1_AFaultyRequestGetsItsOwnErrorAndTheOthersGoOn) {
  RequestParser parser;
  const Body body(R"({"requests":[7,{"call":"fly"},{"type":"t"},{"call":"lock","type":"t","resource_id":"r"},
      {"call":"lock","call":"lock","type":"t","resource_id":"r","node_id":"n"},
      {"call":"lock","type":"t","type":"t","resource_id":"r","node_id":"n"},
      {"call":1,"type":"t"},{"call":"renew","type":"t","resource_id":"r","node_id":"n"},
      {"call":"refs/add","resource_id":"r"},{"call":"refs/release","node_id":"n"},
      {"call":"refs/release_node","node_id":"n"},
      {"call":"lock","type":"t","resource_id":"good","node_id":"n"}]})");
  ASSERT_EQ(parser.parse_batch(body.view()), size_t(12));
  for (const char* fault : {"object", "call", "call", "node_id", "call", "type", "call", "token", "node_id",
                            "resource_id", "call"}) {
    const BatchItem item = parser.next_in_batch();
    ASSERT_TRUE(std::holds_alternative<ApiError>(item)) << fault;
    EXPECT_EQ(std::get<ApiError>(item).status, 400u);
    EXPECT_THAT(std::get<ApiError>(item).message, HasSubstr(fault));
  }
  EXPECT_EQ(std::get<LockCommand>(parser.next_in_batch()).lane.resource, ResourceId("good"));
}

TEST(Batch, WaitAndMonitorAreIgnoredWhateverTheyHold) {
  RequestParser parser;
  const Body body(R"({"requests":[{"call":"lock","type":"t","resource_id":"r","node_id":"n",
      "wait_ms":-1,"monitor":"yes","monitor":true}]})");
  ASSERT_EQ(parser.parse_batch(body.view()), size_t(1));
  EXPECT_FALSE(std::get<LockCommand>(parser.next_in_batch()).monitor);
}

TEST(Batch, S1_ABodyThatIsNoBatchIsRefusedAsAWhole) {
  RequestParser parser;
  for (const char* bad :
       {"", "[]", "{}", R"({"requests":null})", R"({"requests":{}})", R"({"requests":"x"})",
        R"({"requests":[],"requests":[]})", R"({"requests":null,"requests":[]})", R"({"requests":[]}])",
        R"({"requests":[{]})", R"({"requests":[{"call":"lock","x":01}]})"}) {
    const auto result = parser.parse_batch(Body(bad).view());
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().status, 400u);
  }
  EXPECT_EQ(parser.parse_batch(Body(R"({"x":1,"requests":[]})").view()), size_t(0));
}

TEST(Batch, AThousandRequestsAreTakenAndOneMoreIsTooMany) {
  RequestParser parser;
  for (const size_t count : {1000, 1001}) {
    std::string text = R"({"requests":[)";
    for (size_t i = 0; i < count; ++i)
      text += R"({"call":"cancel","type":"t","node_id":"n","resource_id":")" + std::to_string(i) + "\"},";
    text.back() = ']';
    const Body body(text + "}");
    const auto result = parser.parse_batch(body.view());
    if (count > 1000) {
      ASSERT_FALSE(result);
      EXPECT_THAT(result.error().message, HasSubstr("1000"));
      continue;
    }
    ASSERT_EQ(result, count);
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(std::get<CancelCommand>(parser.next_in_batch()).lane.resource.text, std::to_string(i));
  }
}

}  // namespace
}  // namespace turnstile
