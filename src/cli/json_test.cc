// JSON output has the names of the HTTP API.
#include "cli/json.h"

#include <gtest/gtest.h>

namespace turnstile::cli {
namespace {

TEST(Json, ALaneHasTheNamesOfTheApiAndLeavesOutWhatIsNotThere) {
  LaneStatus lane;
  lane.operation = "pull";
  lane.resource = "r";
  lane.state = "held";
  lane.holder = HolderStatus{.node_id = "a",
                             .token = 9007199254740991,
                             .since = WallTime(std::chrono::seconds(1)),
                             .done = 1,
                             .total = 2};
  lane.queue = {WaiterStatus{.node_id = "b", .position = 1, .since = WallTime(std::chrono::seconds(2))}};
  lane.queue_length = 3;
  EXPECT_EQ(
      boost::json::serialize(to_json(lane)),
      R"({"type":"pull","resource_id":"r","state":"held","holder":{"node_id":"a","token":9007199254740991,)"
      R"("since":"1970-01-01T00:00:01.000000Z","done":1,"total":2},"queue":[{"node_id":"b","position":1,"since":"1970-01-01T00:00:02.000000Z"}],"queue_length":3,)"
      R"("references":{"count":0,"nodes":[]},"waiters":[]})");
}

TEST(Json, AResetEventSaysOnlyThatSomeWereMissed) {
  EXPECT_EQ(boost::json::serialize(to_json(Event{.id = "7", .event = "reset"})),
            R"({"id":"7","event":"reset"})");
}

TEST(Json, WhatIsNoUtf8IsReplacedForJsonHasNoOtherWay) {
  EXPECT_EQ(json_text({{"error", "no file \xff"}}), R"({"error":"no file )"
                                                    "\uFFFD\"}");
}

}  // namespace
}  // namespace turnstile::cli
