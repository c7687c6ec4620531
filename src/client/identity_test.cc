// A credential and certificates in files that change, and where a credential goes.
#include "client/identity.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "turnstile/lock_client.h"

namespace turnstile::client {
namespace {

struct IdentityTest : testing::Test {
  IdentityTest() { std::filesystem::create_directory(directory); }
  ~IdentityTest() override { std::filesystem::remove_all(directory); }
  // As those do who know how: beside it, and renamed.
  void write(const std::string& text) const {
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  }
  const std::string directory = testing::TempDir() + "identity_test." + std::to_string(getpid());
  const std::string path = directory + "/credential";
  const ServerUrl https = *parse_server_url("https://a");
};

TEST_F(IdentityTest, ACredentialIsTheFirstLineWithoutTheWhiteSpaceAroundIt) {
  write(" ts_one \r\nand more\n");
  EXPECT_EQ(read_credential(path), "ts_one");
  for (const char* wrong : {"", "\n", "  \nts_one\n", "ts one\n", "ts\tone\n"}) {
    write(wrong);
    const auto read = read_credential(path);
    ASSERT_FALSE(read) << wrong;
    EXPECT_NE(read.error().find(path), std::string::npos);
    EXPECT_EQ(read.error().find("one"), std::string::npos) << "a secret in an error";
  }
}

TEST_F(IdentityTest, GoesWhereNobodyElseReadsIt) {
  ClientSettings settings{.credential = "ts_one"};
  const Identity identity(settings);
  for (const char* url : {"https://a", "unix:/a", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost"})
    EXPECT_EQ(identity.credential_for(*parse_server_url(url)), "ts_one") << url;
  EXPECT_EQ(identity.credential_for(*parse_server_url("http://a:1")), "");
  settings.insecure_credential = true;
  EXPECT_EQ(Identity(settings).credential_for(*parse_server_url("http://a:1")), "ts_one");
}

TEST_F(IdentityTest, AClientOfAPlainServerElsewhereIsNotMadeWithoutBeingToldSo) {
  ClientSettings settings{.servers = {"https://a", "http://b:1"}, .credential = "ts_one"};
  const auto client = LockClient::create(settings);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::invalid);
  EXPECT_NE(client.error().message.find("http://b:1"), std::string::npos);
  EXPECT_EQ(client.error().message.find("ts_one"), std::string::npos);
  settings.insecure_credential = true;
  EXPECT_TRUE(LockClient::create(settings));
}

TEST_F(IdentityTest, IsReadAgainWhenItsFileChangesAndKeptWhenThatIsBroken) {
  std::vector<std::string> notices;
  write("ts_one\n");
  Identity identity(
      {.credential_file = path, .on_notice = [&](const std::string& line) { notices.push_back(line); }});
  const uint64_t first = identity.generation();
  EXPECT_EQ(identity.credential_for(https), "ts_one");
  EXPECT_FALSE(identity.look_again());
  write("ts_two\n");
  EXPECT_TRUE(identity.look_again());
  EXPECT_NE(identity.generation(), first);
  EXPECT_EQ(identity.credential_for(https), "ts_two");
  write("\n");
  EXPECT_FALSE(identity.look_again());
  EXPECT_EQ(identity.credential_for(https), "ts_two");
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_NE(notices[1].find("the one from before is used"), std::string::npos);
  for (const std::string& line : notices) EXPECT_EQ(line.find("ts_"), std::string::npos);
}

TEST_F(IdentityTest, SettingsComeFromTheEnvironment) {
  setenv("TURNSTILE_SERVER", "https://a,https://b", 1);
  setenv("TURNSTILE_CA", "/ca", 1);
  setenv("TURNSTILE_CREDENTIAL", "ts_one", 1);
  setenv("TURNSTILE_CREDENTIAL_FILE", "/file", 1);
  const ClientSettings settings = settings_from_environment();
  for (const char* name : {"SERVER", "CA", "CREDENTIAL", "CREDENTIAL_FILE"})
    unsetenv((std::string("TURNSTILE_") + name).c_str());
  EXPECT_EQ(settings.servers, (std::vector<std::string>{"https://a", "https://b"}));
  EXPECT_EQ(settings.ca_file, "/ca");
  EXPECT_EQ(settings.credential, "ts_one");
  EXPECT_EQ(settings.credential_file, "") << "one of both";
  EXPECT_EQ(settings_from_environment().servers, ClientSettings().servers);
}

TEST_F(IdentityTest, NewCertificatesAreForNewConnections) {
  write("a certificate\n");
  Identity identity({.ca_file = path});
  const uint64_t first = identity.generation();
  write("another one, which is longer\n");
  EXPECT_TRUE(identity.look_again());
  EXPECT_NE(identity.generation(), first);
}

}  // namespace
}  // namespace turnstile::client
