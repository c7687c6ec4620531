#include "access/browser.h"

#include <gtest/gtest.h>

namespace turnstile::access {
namespace {

TEST(OwnNames, OnTheLoopbackAreItsNamesWithAnyPort) {
  const OwnNames own({"127.0.0.1:8086"}, {});
  for (const char* host : {"127.0.0.1:8086", "127.0.0.1", "localhost:8086", "LOCALHOST", "[::1]:1", ""})
    EXPECT_TRUE(own.is_ours(host)) << host;
  for (const char* host :
       {"evil.example", "evil.example:8086", "127.0.0.1.evil.example", "localhost.evil.example:8086",
        "10.0.0.1", "[::2]:8086", "127.0.0.2:8086", "2130706433"})
    EXPECT_FALSE(own.is_ours(host)) << host;
}

TEST(OwnNames, AreTheAddressesThatWeListenOnAndNamesThatWeWereToldOf) {
  const OwnNames own({"https://10.1.2.3:8086", "unix:/run/x"}, {"Locks.example", "other.example:8443"});
  EXPECT_TRUE(own.is_ours("10.1.2.3:8086"));
  EXPECT_TRUE(own.is_ours("locks.example:8086"));
  EXPECT_TRUE(own.is_ours("other.example"));
  EXPECT_FALSE(own.is_ours("localhost:8086"));
  EXPECT_FALSE(own.is_ours("10.1.2.4:8086"));
}

TEST(OwnNames, OnAllAddressesAnyAddressIsOurs) {
  const OwnNames own({"0.0.0.0:8086"}, {});
  EXPECT_TRUE(own.is_ours("192.168.7.7:8086"));
  EXPECT_TRUE(own.is_ours("[fe80::1]:8086"));
  EXPECT_TRUE(own.is_ours("localhost"));
  EXPECT_FALSE(own.is_ours("evil.example:8086"));  // a name can be made to point anywhere
  EXPECT_FALSE(own.is_ours("1.2.3.4.evil.example"));
}

TEST(OwnNames, APageIsOurOwnIfItWasServedUnderTheNameThatItAsks) {
  const OwnNames own({"127.0.0.1:8086"}, {"locks.example"});
  EXPECT_TRUE(own.is_own_page("http://127.0.0.1:8086", "127.0.0.1:8086"));
  EXPECT_TRUE(own.is_own_page("https://locks.example", "127.0.0.1:8086"));  // a proxy's name
  for (const char* origin : {"null", "", "http://evil.example", "http://127.0.0.1:9999", "http://127.0.0.1",
                             "https://locks.example:444", "http://127.0.0.1:8086.evil.example", "file://",
                             "chrome-extension://127.0.0.1:8086"})
    EXPECT_FALSE(own.is_own_page(origin, "127.0.0.1:8086")) << origin;
}

TEST(OwnNames, WithoutAnyNothingIsChecked) {
  EXPECT_TRUE(OwnNames().is_ours("whatever"));
  EXPECT_TRUE(OwnNames().is_own_page("null", "whatever"));
}

TEST(OwnNames, AnotherPortOfTheSameMachineIsAForeignSite) {
  EXPECT_FALSE(is_foreign_site(""));
  EXPECT_FALSE(is_foreign_site("none"));
  EXPECT_FALSE(is_foreign_site("same-origin"));
  EXPECT_TRUE(is_foreign_site("same-site"));
  EXPECT_TRUE(is_foreign_site("cross-site"));
  EXPECT_TRUE(is_foreign_site("something-new"));
}

}  // namespace
}  // namespace turnstile::access
