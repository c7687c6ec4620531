// Who is let in: certificates, and users with passwords.
#include <gtest/gtest.h>

#include "etcd/test_etcd.h"

namespace turnstile::etcd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::kEventually;
using testing::TestEtcd;

Answer<TransactionAnswer> put(Client& client, const std::string& key) {
  return client.commit({.puts = {{key, "x"}}}, kEventually);
}

TEST(EtcdAccess, CertificatesOfBothSidesAreLookedAt) {
  TestEtcd etcd({.tls = true, .asks_for_certificate = true});
  EXPECT_TRUE(put(*etcd.connect(), "a"));
  const std::string tls = (etcd.directory() / "tls").string();

  Options wrong_ca = etcd.options();
  wrong_ca.ca_file = tls + "/other-ca.pem";
  const auto untrusted = put(**connect(wrong_ca), "b");
  ASSERT_FALSE(untrusted);
  EXPECT_EQ(untrusted.error().failure, Failure::denied) << untrusted.error().message;

  Options none = etcd.options();
  none.cert_file = none.key_file = "";
  const auto nameless = put(**connect(none), "b");
  ASSERT_FALSE(nameless);
  EXPECT_EQ(nameless.error().failure, Failure::denied) << nameless.error().message;

  Options other = etcd.options();
  other.cert_file = tls + "/other.pem";
  other.key_file = tls + "/other.key";
  const auto unknown = put(**connect(other), "b");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().failure, Failure::denied) << unknown.error().message;

  Options plain = etcd.options();
  plain.ca_file = plain.cert_file = plain.key_file = "";
  for (std::string& url : plain.endpoints) url = "http" + url.substr(5);
  const auto without = (*connect(plain))->range({.begin = "a"}, seconds(10));
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().failure, Failure::not_done) << without.error().message;
  EXPECT_TRUE((*etcd.connect()).range({.begin = "b"}, kEventually)->values.empty());
}

TEST(EtcdAccess, AUserSeesItsPrefixAndLogsInAgain) {
  TestEtcd etcd;
  for (const char* words : {"user add root:secret", "user grant-role root root", "role add ts",
                            "role grant-permission ts readwrite --prefix=true ts/", "user add me:word",
                            "user grant-role me ts", "auth enable"})
    etcd.control(words);
  Options options = etcd.options();
  EXPECT_EQ(put(**connect(options), "ts/a").error().failure, Failure::denied) << "without a name";
  options.user = "me";
  options.password = "wrong";
  const auto wrong = put(**connect(options), "ts/a");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().failure, Failure::denied) << wrong.error().message;

  options.password = "word";
  const auto client = *connect(options);
  const auto mine = put(*client, "ts/a");
  ASSERT_TRUE(mine) << mine.error().message;
  EXPECT_EQ(put(*client, "other").error().failure, Failure::denied);
  const auto lease = client->grant(seconds(60), kEventually);
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_TRUE(client->keep_alive(lease->lease, kEventually));

  std::atomic<int> events{0};
  const auto watch = client->watch(
      "ts/", prefix_end("ts/"), mine->revision,
      [&](const std::vector<WatchEvent>& more, Revision) { events += int(more.size()); },
      [](const CallError& error) { ADD_FAILURE() << error.message; });
  // A member that starts anew has forgotten who has logged in.
  etcd.kill(0);
  etcd.start(0);
  etcd.wait_until_healthy(options);
  Answer<TransactionAnswer> again = put(*client, "ts/b");
  for (int i = 0; !again && again.error().failure != Failure::denied && i < 100; ++i)
    again = put(*client, "ts/b");
  EXPECT_TRUE(again) << again.error().message;
  for (const auto end = std::chrono::steady_clock::now() + kEventually;
       events < 2 && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_GE(events, 2);
}

TEST(EtcdAccess, AUserThatNobodyAskedForIsShownWhenSomebodyDoes) {
  TestEtcd etcd;
  for (const char* words :
       {"user add root:secret", "user grant-role root root", "role add ts",
        "role grant-permission ts readwrite --prefix=true ts/", "user add me:word", "user grant-role me ts"})
    etcd.control(words);
  Options options = etcd.options();
  options.user = "me";
  options.password = "word";
  const auto client = *connect(options);
  ASSERT_TRUE(put(*client, "ts/a"));
  etcd.control("auth enable");
  const auto still = put(*client, "ts/b");
  EXPECT_TRUE(still) << still.error().message;
  EXPECT_TRUE(client->range({.begin = "ts/b"}, kEventually));
}

}  // namespace
}  // namespace turnstile::etcd
