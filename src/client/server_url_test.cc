// Which addresses are the same, which are near, and whom a client follows (decision 0027).
#include "client/server_url.h"

#include <gtest/gtest.h>

namespace turnstile::client {
namespace {

ServerUrl url(const char* text) { return *parse_server_url(text); }

TEST(ServerUrl, IsTheSameHoweverItIsWritten) {
  EXPECT_TRUE(same_server("http://Host:8086/", "http://host:8086"));
  EXPECT_TRUE(same_server("https://host", "https://host:443"));
  EXPECT_TRUE(same_server("http://[::1]", "http://[::1]:80"));
  EXPECT_TRUE(same_server("unix:/a", "unix:/a"));
  EXPECT_FALSE(same_server("http://host:8086", "https://host:8086"));
  EXPECT_FALSE(same_server("http://host:8086", "http://host:8087"));
  EXPECT_FALSE(same_server("http://host/a", "http://host/b"));
  EXPECT_FALSE(same_server("unix:/a", "unix:/b"));
  EXPECT_FALSE(same_server("unix:/a", "http://localhost"));
  EXPECT_FALSE(same_server("nonsense", "http://localhost"));
}

TEST(ServerUrl, KnowsThisMachine) {
  for (const char* text :
       {"http://127.0.0.1:1", "http://localhost", "http://[::1]:1", "unix:/a", "http://127.9.9.9"})
    EXPECT_TRUE(url(text).is_local()) << text;
  for (const char* text : {"http://127.0.0.1.example.org", "http://10.0.0.1:1",
                           "http://localhost.example.org", "https://host", "http://127.example.org:1"})
    EXPECT_FALSE(url(text).is_local()) << text;
}

TEST(ServerUrl, ACredentialIsNotTakenToAStranger) {
  // From, to, and whether: without a credential, with one.
  const std::tuple<const char*, const char*, bool, bool> table[] = {
      {"http://a:1", "http://b:1", true, false},
      {"http://a:1", "https://b:1", true, false},
      {"https://a:1", "https://b:1", true, true},
      {"https://a:1", "http://b:1", false, false},
      {"https://a:1", "http://127.0.0.1:1", false, false},
      {"http://127.0.0.1:1", "http://127.0.0.1:2", true, true},
      {"http://127.0.0.1:1", "http://b:1", true, false},
      {"http://127.0.0.1:1", "https://b:1", true, true},
      {"unix:/a", "https://b:1", true, true},
      {"unix:/a", "http://b:1", true, false},
      {"http://a:1", "unix:/b", false, false},
  };
  for (const auto& [from, to, without, with] : table) {
    EXPECT_EQ(may_follow(url(from), url(to), false), without) << from << " to " << to;
    EXPECT_EQ(may_follow(url(from), url(to), true), with) << from << " to " << to;
  }
}

}  // namespace
}  // namespace turnstile::client
