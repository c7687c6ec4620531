// The client with a real etcd of one member.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "etcd/test_etcd.h"

namespace turnstile::etcd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::kEventually;
using testing::TestEtcd;

Transaction put(const std::string& key, const std::string& value, LeaseId lease = LeaseId::none) {
  return {.puts = {{key, value, lease}}};
}

TEST(EtcdClient, WhatWasCommittedIsRead) {
  TestEtcd etcd;
  const auto client = etcd.connect();
  const auto first = client->commit(put("a/1", "one"), kEventually);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(first->done);
  const auto second =
      client->commit({.puts = {{"a/2", "two"}, {"a/3", std::string(300'000, 'x')}}}, kEventually);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->revision, first->revision + 1) << "all of it in one revision";

  auto range = client->range({.begin = "a/", .end = prefix_end("a/")}, kEventually);
  ASSERT_TRUE(range) << range.error().message;
  ASSERT_EQ(range->values.size(), 3u);
  EXPECT_EQ(range->values[0].value, "one");
  EXPECT_EQ(range->values[0].create_revision, first->revision);
  EXPECT_EQ(range->values[2].value.size(), 300'000u);
  EXPECT_EQ(range->revision, second->revision);
  EXPECT_FALSE(range->more);

  range = client->range({.begin = "a/", .end = prefix_end("a/"), .limit = 1, .keys_only = true}, kEventually);
  ASSERT_EQ(range->values.size(), 1u);
  EXPECT_TRUE(range->more);
  EXPECT_EQ(range->values[0].value, "");
  range = client->range({.begin = "a/", .end = prefix_end("a/"), .at = first->revision}, kEventually);
  EXPECT_EQ(range->values.size(), 1u) << "as it was then";
}

TEST(EtcdClient, AGuardThatDoesNotHoldChangesNothing) {
  TestEtcd etcd;
  const auto client = etcd.connect();
  Transaction election{.guards = {{"leader", 0}}, .puts = {{"leader", "me"}}};
  const auto won = client->commit(election, kEventually);
  ASSERT_TRUE(won && won->done);
  const auto lost = client->commit(election, kEventually);
  ASSERT_TRUE(lost);
  EXPECT_FALSE(lost->done);

  const Guard guard{"leader", won->revision};
  EXPECT_TRUE(
      client->commit({.guards = {guard}, .puts = {{"log/1", "x"}, {"log/2", "y"}}}, kEventually)->done);
  EXPECT_TRUE(
      client
          ->commit({.guards = {guard}, .erases = {{"log/1", "log/2"}}, .puts = {{"log/3", "z"}}}, kEventually)
          ->done);
  EXPECT_EQ(client->range({.begin = "log/", .end = "log0"}, kEventually)->values.size(), 2u);
  ASSERT_TRUE(client->commit({.erases = {{"leader", ""}}}, kEventually)->done);
  EXPECT_FALSE(client->commit({.guards = {guard}, .puts = {{"log/4", "late"}}}, kEventually)->done);
  EXPECT_EQ(client->range({.begin = "log/", .end = "log0"}, kEventually)->values.size(), 2u);
}

TEST(EtcdClient, KeysLeaveWithTheirLease) {
  TestEtcd etcd;
  const auto client = etcd.connect();
  const auto lease = client->grant(seconds(30), kEventually);
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(lease->ttl, seconds(30));
  ASSERT_TRUE(client->commit(put("leader", "me", lease->lease), kEventually)->done);
  const auto renewed = client->keep_alive(lease->lease, kEventually);
  ASSERT_TRUE(renewed) << renewed.error().message;
  EXPECT_EQ(*renewed, seconds(30));
  ASSERT_TRUE(client->revoke(lease->lease, kEventually));
  EXPECT_TRUE(client->range({.begin = "leader"}, kEventually)->values.empty());

  EXPECT_EQ(client->keep_alive(lease->lease, kEventually).error().failure, Failure::gone);
  EXPECT_EQ(client->revoke(lease->lease, kEventually).error().failure, Failure::gone);
  EXPECT_EQ(client->commit(put("leader", "me", lease->lease), kEventually).error().failure, Failure::gone);
}

// What a watch has told, and how to wait for it.
struct Seen {
  std::mutex mutex;
  std::condition_variable condition;
  std::vector<WatchEvent> events;
  Revision revision = 0;
  std::optional<CallError> lost;

  OnWatch on_events() {
    return [this](std::vector<WatchEvent> more, Revision upto) {
      const std::lock_guard lock(mutex);
      for (WatchEvent& each : more) events.push_back(std::move(each));
      revision = upto;
      condition.notify_all();
    };
  }
  std::function<void(CallError)> on_lost() {
    return [this](CallError error) {
      const std::lock_guard lock(mutex);
      lost = std::move(error);
      condition.notify_all();
    };
  }
  template <class Condition>
  bool wait(Condition until) {
    std::unique_lock lock(mutex);
    return condition.wait_for(lock, kEventually, until);
  }
};

TEST(EtcdClient, AWatchGoesOnWhenEtcdIsBack) {
  TestEtcd etcd;
  const auto client = etcd.connect();
  const Revision first = client->commit(put("log/1", "a"), kEventually)->revision;
  Seen seen;
  const auto watch = client->watch("log/", prefix_end("log/"), first, seen.on_events(), seen.on_lost());
  ASSERT_TRUE(seen.wait([&] { return seen.events.size() == 1; })) << "what was there before";
  client->commit(put("other", "x"), kEventually);
  client->commit({.erases = {{"log/1", ""}}, .puts = {{"log/2", "b"}}}, kEventually);
  ASSERT_TRUE(seen.wait([&] { return seen.events.size() == 3; }));
  EXPECT_TRUE(seen.events[1].erased);
  EXPECT_EQ(seen.events[1].value.key, "log/1");
  EXPECT_EQ(seen.events[2].value.value, "b");
  EXPECT_EQ(seen.revision, first + 2);

  etcd.kill(0);
  etcd.start(0);
  etcd.wait_until_healthy();
  Answer<TransactionAnswer> third = std::unexpected(CallError{});
  while (!third) third = client->commit(put("log/3", "c"), kEventually);
  ASSERT_TRUE(seen.wait([&] { return seen.events.back().value.key == "log/3"; }));
  EXPECT_FALSE(seen.lost);
}

TEST(EtcdClient, WhatWasCompactedIsSaidToBeGone) {
  TestEtcd etcd;
  const auto client = etcd.connect();
  const Revision first = client->commit(put("a", "1"), kEventually)->revision;
  const Revision last = client->commit(put("a", "2"), kEventually)->revision;
  ASSERT_TRUE(client->compact(last, kEventually));
  EXPECT_EQ(client->range({.begin = "a", .at = first}, kEventually).error().failure, Failure::compacted);
  EXPECT_EQ(client->compact(first, kEventually).error().failure, Failure::compacted);
  Seen seen;
  const auto watch = client->watch("a", "", first, seen.on_events(), seen.on_lost());
  ASSERT_TRUE(seen.wait([&] { return seen.lost.has_value(); }));
  EXPECT_EQ(seen.lost->failure, Failure::compacted);
}

TEST(EtcdClient, WhatIsTooLargeIsRefused) {
  TestEtcd etcd;
  const auto client = etcd.connect();
  EXPECT_EQ(client->commit(put("a", std::string(1'600'000, 'x')), kEventually).error().failure,
            Failure::refused);
  EXPECT_EQ(client->commit(put("a", std::string(9'000'000, 'x')), kEventually).error().failure,
            Failure::refused);
  Transaction many;
  for (int i = 0; i < 200; ++i) many.puts.push_back({"k" + std::to_string(i), "v"});
  EXPECT_EQ(client->commit(many, kEventually).error().failure, Failure::refused);
}

TEST(EtcdClient, AFullEtcdIsToldApart) {
  TestEtcd etcd({.quota_bytes = 4 << 20});
  const auto client = etcd.connect();
  Answer<TransactionAnswer> last;
  for (int i = 0; i < 100 && last; ++i)
    last = client->commit(put("k" + std::to_string(i), std::string(500'000, 'x')), kEventually);
  ASSERT_FALSE(last) << "the quota is not kept";
  EXPECT_EQ(last.error().failure, Failure::no_space) << last.error().message;
  EXPECT_EQ(client->grant(seconds(10), kEventually).error().failure, Failure::no_space);
  EXPECT_TRUE(client->range({.begin = "k0"}, kEventually)) << "what is there can be read";
  const auto members = client->members(kEventually);
  ASSERT_EQ(members.size(), 1u);
  EXPECT_TRUE(members[0].no_space);
  EXPECT_TRUE(members[0].leads);
  EXPECT_GT(members[0].database_bytes, 3 << 20);
}

TEST(EtcdClient, AnAddressWhereNobodyIsMeansThatNothingWasDone) {
  const auto client = *connect({.endpoints = {"http://127.0.0.1:1"}});
  const auto committed = client->commit(put("a", "1"), kEventually);
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().failure, Failure::not_done);
  EXPECT_NE(committed.error().message.find("127.0.0.1:1"), std::string::npos);
  EXPECT_NE(committed.error().message.find("onnection refused"), std::string::npos)
      << committed.error().message;
  const auto nowhere = *connect({.endpoints = {"http://no-such-host.invalid:2379"}});
  EXPECT_EQ(nowhere->grant(seconds(5), kEventually).error().failure, Failure::not_done);
  EXPECT_FALSE(client->members(seconds(5))[0].healthy);
}

TEST(EtcdClient, SettingsThatContradictAreOneSentence) {
  EXPECT_FALSE(connect({}));
  EXPECT_FALSE(connect({.endpoints = {"127.0.0.1:2379"}}));
  EXPECT_FALSE(connect({.endpoints = {"http://a:1", "https://b:1"}}));
  EXPECT_FALSE(connect({.endpoints = {"http://a:1/v3"}}));
  EXPECT_FALSE(connect({.endpoints = {"http://a:1"}, .ca_file = "/etc/ca"}));
  EXPECT_FALSE(connect({.endpoints = {"https://a:1"}, .cert_file = "/etc/cert"}));
  EXPECT_FALSE(connect({.endpoints = {"http://a:1"}, .user = "me"}));
  const auto missing = connect({.endpoints = {"https://a:1"}, .ca_file = "/no/such/file"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error(), "etcd's CA: cannot read /no/such/file");
}

}  // namespace
}  // namespace turnstile::etcd
