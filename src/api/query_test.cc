// Query strings: decoded strictly, then under the same rules as bodies (S1).
#include "api/query.h"

#include <gmock/gmock.h>

namespace turnstile {
namespace {

using testing::HasSubstr;

template <class T>
std::string fault(const ApiResult<T>& result) {
  if (result) return {};
  EXPECT_EQ(result.error().status, 400u);
  EXPECT_EQ(result.error().code, "invalid");
  return result.error().message;
}

TEST(Query, StatusNamesALaneAndPerhapsARequester) {
  QueryParser parser;
  const auto nobody = parser.parse_status("type=pull&resource_id=sha256:ab");
  ASSERT_TRUE(nobody) << nobody.error().message;
  EXPECT_EQ(nobody->lane, (LaneName{OperationName("pull"), ResourceId("sha256:ab")}));
  EXPECT_TRUE(nobody->who.node.empty());
  const auto somebody = parser.parse_status("request_id=q&node_id=n&type=pull&resource_id=r");
  ASSERT_TRUE(somebody);
  EXPECT_EQ(somebody->who, (Requester{NodeId("n"), RequestId("q")}));
}

TEST(Query, TextsArePercentDecodedAndPlusIsASpace) {
  QueryParser parser;
  const auto status = parser.parse_status("t%79pe=a%3Ab&resource_id=%C3%A9+%2B%25%26%3d/?=x&&node_id=n%20");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->lane.operation.text, "a:b");
  EXPECT_EQ(status->lane.resource.text, "é +%&=/?=x");
  EXPECT_EQ(status->who.node.text, "n ");
}

TEST(Query, S1_WhatCannotBeDecodedIsRefused) {
  QueryParser parser;
  for (const char* bad : {"%", "%4", "%zz", "%4g", "x%", "%%41"}) {
    EXPECT_THAT(fault(parser.parse_status("type=t&resource_id=" + std::string(bad))), HasSubstr("%-sequence"))
        << bad;
    EXPECT_THAT(fault(parser.parse_status("type=t&resource_id=r&" + std::string(bad) + "=1")),
                HasSubstr("%-sequence"))
        << bad << " as an unknown name";
  }
  for (const char* bad : {"%FF", "%C0%AF", "%ED%A0%80", "\xff", "%E2%82"})
    EXPECT_THAT(fault(parser.parse_status("type=t&resource_id=" + std::string(bad))), HasSubstr("UTF-8"))
        << bad;
}

TEST(Query, S1_ControlCharactersAreRefusedAlsoWhenEncoded) {
  QueryParser parser;
  for (const char* bad : {"%00", "%0A", "%1f", "%7F"})
    for (const char* field : {"type", "resource_id", "node_id", "request_id"}) {
      std::string query;
      for (const std::string name : {"type", "resource_id", "node_id", "request_id"})
        query += name + "=x" + (name == field ? bad : "") + "&";
      EXPECT_THAT(fault(parser.parse_subscribe(query)), HasSubstr(field)) << query;
    }
  EXPECT_THAT(fault(parser.parse_list("prefix=a%00")), HasSubstr("prefix"));
}

TEST(Query, S1_AKnownNameTwiceIsRefusedAndUnknownOnesAreIgnored) {
  QueryParser parser;
  EXPECT_THAT(fault(parser.parse_status("type=t&resource_id=r&type=t")), HasSubstr("\"type\" occurs twice"));
  EXPECT_THAT(fault(parser.parse_status("type=t&resource_id=r&node_id=&node_id=n")),
              HasSubstr("\"node_id\" occurs"));
  EXPECT_EQ(fault(parser.parse_status("type=t&resource_id=r&x=1&x=2&limit=abc&y&=")), "");
}

TEST(Query, S1_AMissingOrEmptyRequiredNameIsNamed) {
  QueryParser parser;
  EXPECT_THAT(fault(parser.parse_status("")), HasSubstr("type"));
  EXPECT_THAT(fault(parser.parse_status("type=t")), HasSubstr("resource_id"));
  EXPECT_THAT(fault(parser.parse_status("type=&resource_id=r")), HasSubstr("type"));
  EXPECT_THAT(fault(parser.parse_subscribe("type&resource_id=r")), HasSubstr("type"));
  EXPECT_THAT(fault(parser.parse_references("node_id=n")), HasSubstr("resource_id"));
  EXPECT_THAT(fault(parser.parse_subscribe("type=t&resource_id=r&request_id=q")), HasSubstr("names nobody"));
  EXPECT_THAT(fault(parser.parse_status("type=t&resource_id=" + std::string(1025, 'r'))), HasSubstr("1024"));
}

TEST(Query, SubscribeEventsAndReferencesBecomeTheirRequests) {
  QueryParser parser;
  const auto subscribe = parser.parse_subscribe("type=t&resource_id=r&node_id=n&request_id=q");
  ASSERT_TRUE(subscribe);
  EXPECT_EQ(subscribe->who, (Requester{NodeId("n"), RequestId("q")}));
  EXPECT_EQ(subscribe->bond, BondId::none);
  const auto all = parser.parse_events("");
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->prefix.empty() && all->operation.empty());
  const auto some = parser.parse_events("prefix=sha256%3A&type=pull");
  ASSERT_TRUE(some);
  EXPECT_EQ(some->prefix, "sha256:");
  EXPECT_EQ(some->operation, OperationName("pull"));
  const auto references = parser.parse_references("resource_id=r");
  ASSERT_TRUE(references);
  EXPECT_EQ(references->resource, ResourceId("r"));
  EXPECT_TRUE(references->after.empty());
  EXPECT_EQ(references->limit, 100u);
  const auto page = parser.parse_references("resource_id=r&after=n%2F1&limit=1000");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->after, NodeId("n/1"));
  EXPECT_EQ(page->limit, 1000u);
  EXPECT_THAT(fault(parser.parse_references("resource_id=r&limit=1001")), HasSubstr("limit"));
  EXPECT_THAT(fault(parser.parse_references("resource_id=r&limit=0")), HasSubstr("limit"));
}

TEST(Query, AListHasFiltersALimitAndACursor) {
  QueryParser parser;
  const auto plain = parser.parse_list("");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->limit, 100u);
  EXPECT_FALSE(plain->state);
  EXPECT_TRUE(plain->after.resource.empty());
  const auto full = parser.parse_list("prefix=a&type=pull&state=waiting&limit=1000");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->prefix, "a");
  EXPECT_EQ(full->operation, OperationName("pull"));
  EXPECT_EQ(full->state, LaneState::waiting);
  EXPECT_EQ(full->limit, 1000u);
  for (const auto& [text, state] : {std::pair("idle", LaneState::idle), std::pair("held", LaneState::held),
                                    std::pair("completed", LaneState::completed)})
    EXPECT_EQ(parser.parse_list("state=" + std::string(text))->state, state);
  EXPECT_EQ(parser.parse_list("limit=&state=&cursor=")->limit, 100u) << "empty counts as absent";
}

TEST(Query, S57_AListHasFiltersForPeopleAndAnOrder) {
  QueryParser parser;
  const auto plain = parser.parse_list("");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->order, ListOrder::name);
  EXPECT_EQ(plain->names, kMostNamed);
  EXPECT_FALSE(plain->count);
  const auto full = parser.parse_list("contains=ngi&node=n%2F1&state=queued&sort=queue&count=1&names=0");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->contains, "ngi");
  EXPECT_EQ(full->node, NodeId("n/1"));
  EXPECT_EQ(full->group, LaneGroup::queued);
  EXPECT_FALSE(full->state);
  EXPECT_EQ(full->order, ListOrder::queue);
  EXPECT_TRUE(full->count);
  EXPECT_EQ(full->names, 0u);
  EXPECT_EQ(parser.parse_list("state=active")->group, LaneGroup::active);
  EXPECT_EQ(parser.parse_list("sort=since")->order, ListOrder::since);
  EXPECT_EQ(parser.parse_list("sort=name&count=0")->order, ListOrder::name);
  EXPECT_THAT(fault(parser.parse_list("sort=age")), HasSubstr("sort"));
  EXPECT_THAT(fault(parser.parse_list("count=2")), HasSubstr("count"));
  EXPECT_THAT(fault(parser.parse_list("names=101")), HasSubstr("names"));
  EXPECT_THAT(fault(parser.parse_list("node=a%0ab")), HasSubstr("node"));
  EXPECT_THAT(fault(parser.parse_list("sort=queue&cursor=YQBi")), HasSubstr("cursor"));
}

TEST(Query, S1_AListRefusesLimitsStatesAndCursorsThatAreNone) {
  QueryParser parser;
  for (const char* bad : {"0", "1001", "-1", "1.5", "1e2", "x", "+5", "99999999999999999999", "5x"})
    EXPECT_THAT(fault(parser.parse_list("limit=" + std::string(bad))), HasSubstr("limit")) << bad;
  for (const char* bad :
       {"0", "1001", "-1", "9007199254740992", "99999999999999999999", "-99999999999999999999"})
    EXPECT_EQ(fault(parser.parse_list("limit=" + std::string(bad))), "\"limit\" must be from 1 to 1000")
        << bad;
  for (const char* bad : {"1.5", "1e2", "x", "+5", "5x", "-", "--1", "0x10", "%31%20"})
    EXPECT_EQ(fault(parser.parse_list("limit=" + std::string(bad))),
              "\"limit\" must be an integer in decimal digits")
        << bad;
  EXPECT_THAT(fault(parser.parse_list("state=free")), HasSubstr("state"));
  EXPECT_THAT(fault(parser.parse_list("cursor=nonsense!")), HasSubstr("cursor"));
}

}  // namespace
}  // namespace turnstile
