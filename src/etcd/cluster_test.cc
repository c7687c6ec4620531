// The client with an etcd of three members, of which some are away.
#include <gtest/gtest.h>

#include <thread>

#include "etcd/members.h"
#include "etcd/test_etcd.h"

namespace turnstile::etcd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::kEventually;
using testing::TestEtcd;

Transaction put(const std::string& key) { return {.puts = {{key, "x"}}}; }

size_t leader_of(Client& client) {
  for (;;) {
    const auto members = client.members(seconds(5));
    for (size_t i = 0; i < members.size(); ++i)
      if (members[i].leads) return i;
    std::this_thread::sleep_for(milliseconds(50));
  }
}

TEST(EtcdCluster, AMemberThatIsKilledIsReplacedByAnother) {
  TestEtcd etcd({.members = 3});
  const auto client = etcd.connect();
  ASSERT_TRUE(client->commit(put("k/0"), kEventually));
  const size_t leader = leader_of(*client);
  const auto lease = client->grant(seconds(60), kEventually);
  ASSERT_TRUE(lease) << lease.error().message;
  etcd.kill(leader);
  // Some may be unknown; then, for good, all is well.
  const auto end = steady_clock::now() + kEventually;
  Answer<TransactionAnswer> answer = std::unexpected(CallError{});
  while (!answer && steady_clock::now() < end) {
    answer = client->commit(put("k/1"), seconds(3));
    if (answer) break;
    EXPECT_TRUE(answer.error().failure == Failure::unknown || answer.error().failure == Failure::not_done)
        << answer.error().message;
    std::this_thread::sleep_for(milliseconds(20));
  }
  ASSERT_TRUE(answer);
  EXPECT_EQ(client->range({.begin = "k/", .end = "k0"}, kEventually)->values.size(), 2u);
  EXPECT_TRUE(client->keep_alive(lease->lease, kEventually));
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(client->commit(put("k/2"), kEventually)) << "who answered last is asked first";
  const auto members = client->members(seconds(5));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(members[i].healthy, i != leader) << members[i].error;
  EXPECT_NE(members[leader].error, "");
}

// SIGSTOP: connections stay, and nobody answers.
TEST(EtcdCluster, AMemberThatDoesNotAnswerLeavesTheOutcomeUnknownOnce) {
  TestEtcd etcd({.members = 3});
  const auto client = etcd.connect();
  ASSERT_TRUE(client->commit(put("k/0"), kEventually));
  const size_t leader = leader_of(*client);
  Options options = etcd.options();
  std::rotate(options.endpoints.begin(), options.endpoints.begin() + long(leader), options.endpoints.end());
  const auto mine = *connect(options);
  ASSERT_TRUE(mine->commit(put("k/1"), kEventually));
  etcd.pause(leader);
  const auto unknown = mine->commit(put("k/2"), milliseconds(500));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().failure, Failure::unknown) << unknown.error().message;
  // Another is asked the next time; until they have a new leader, they may say that nothing was done.
  const auto end = steady_clock::now() + kEventually;
  Answer<TransactionAnswer> answer = std::unexpected(CallError{});
  while (!answer && steady_clock::now() < end) answer = mine->commit(put("k/3"), seconds(3));
  EXPECT_TRUE(answer) << answer.error().message;
  // A read is asked of another within its own time.
  const auto reader = *connect(options);
  EXPECT_TRUE(reader->range({.begin = "k/", .end = "k0"}, kEventually));
  etcd.resume(leader);
}

// Through another member a commit takes twice as long, and the member's processor time.
TEST(EtcdCluster, ChangesAreAskedOfTheMemberThatLeadsAlsoWhenAnotherDoes) {
  TestEtcd etcd({.members = 3});
  Members members(etcd.options(), grpc::InsecureChannelCredentials());
  const auto client = etcd.connect();
  size_t leader = leader_of(*client);
  const auto is_found = [&] {
    const auto end = steady_clock::now() + kEventually;
    while (members.first(Members::Kind::changes) != leader && steady_clock::now() < end)
      std::this_thread::sleep_for(milliseconds(20));
    return members.first(Members::Kind::changes) == leader;
  };
  EXPECT_TRUE(is_found());
  members.failed(leader);
  EXPECT_NE(members.first(Members::Kind::changes), leader) << "one that fails is not asked again at once";
  EXPECT_TRUE(is_found());
  etcd.kill(leader);
  leader = leader_of(*client);
  EXPECT_TRUE(is_found());
}

TEST(EtcdCluster, WithoutAMajorityNothingIsDone) {
  TestEtcd etcd({.members = 3});
  const auto client = etcd.connect();
  ASSERT_TRUE(client->commit(put("k/0"), kEventually));
  etcd.kill(1);
  etcd.kill(2);
  const auto end = steady_clock::now() + kEventually;
  Answer<TransactionAnswer> answer;
  do {
    answer = client->commit(put("k/1"), seconds(2));
    ASSERT_FALSE(answer);
  } while (answer.error().failure == Failure::unknown && steady_clock::now() < end);
  EXPECT_EQ(answer.error().failure, Failure::not_done) << answer.error().message;
  EXPECT_FALSE(client->range({.begin = "k/0"}, seconds(2))) << "no member's own idea of it";
  etcd.start(1);
  etcd.start(2);
  etcd.wait_until_healthy();
  EXPECT_TRUE(client->range({.begin = "k/0"}, kEventually));
}

}  // namespace
}  // namespace turnstile::etcd
