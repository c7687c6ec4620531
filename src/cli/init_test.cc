// Certificates, secrets and the folders that `turnstile init` makes of them. That real programs take them is
// shown by test/process/init_test.py.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "cli/certificates.h"
#include "cli/program.h"
#include "cli/secret.h"

namespace turnstile::cli {
namespace {

namespace fs = std::filesystem;

class Init : public testing::Test {
 protected:
  Init() {
    char name[] = "/tmp/turnstile-init-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Init() override { fs::remove_all(folder_); }

  int run(std::vector<std::string> more) {
    std::vector<std::string> words{"init", (folder_ / "made").string()};
    words.insert(words.end(), more.begin(), more.end());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = run_program(words);
    testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }
  std::string text(const std::string& name) const {
    std::ifstream file(folder_ / "made" / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool has(const std::string& name) const { return fs::exists(folder_ / "made" / name); }

  fs::path folder_;
  std::string error_;  // of the last run
};

TEST_F(Init, WhatCannotBeRightIsSaidBeforeAnythingIsWritten) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--hosts", "a", "--store", "foo"},
                                                {"--hosts", "a", "--store", "memory"},
                                                {"--hosts", "a", "--prefix", "etc"},
                                                {"--hosts", "../a"}}) {
    EXPECT_EQ(run(wrong), kUsage) << wrong.back();
    EXPECT_FALSE(fs::exists(folder_ / "made"));
  }
}

TEST_F(Init, OneThatFailsLeavesNothingThatTheNextOneStumblesOver) {
  const std::string too_long(200, 'x');  // for a certificate's name, and not for a folder's
  EXPECT_NE(run({"--hosts", too_long}), kOk);
  EXPECT_FALSE(fs::exists(folder_ / "made"));
  EXPECT_EQ(run({"--hosts", "a"}), kOk);
}

TEST_F(Init, ASymlinkToNothingThatItDidNotMakeStays) {
  fs::create_symlink(folder_ / "not-mounted", folder_ / "made");
  EXPECT_NE(run({"--hosts", "a"}), kOk);
  EXPECT_TRUE(fs::is_symlink(folder_ / "made"));
}

TEST_F(Init, AMachineThatIsNamedTwiceIsOne) { EXPECT_EQ(run({"--hosts", "a,a", "--nodes", "b,a,b"}), kOk); }

TEST_F(Init, MakesAFolderForEachMachineWithWhatThatMachineNeedsOnly) {
  ASSERT_EQ(run({"--hosts", "lock.example", "--nodes", "node-a,node-b"}), kOk);
  for (const char* const name :
       {"server.crt", "server.key", "ca.crt", "credentials.toml", "turnstiled.toml"}) {
    EXPECT_TRUE(has(std::string("machines/lock.example/") + name)) << name;
    EXPECT_EQ(has(std::string("machines/node-a/") + name), std::string(name) == "ca.crt") << name;
  }
  for (const char* const name : {"node.crt", "node.key", "turnstile.toml", "turnstile-content.toml"}) {
    EXPECT_TRUE(has(std::string("machines/node-b/") + name)) << name;
    EXPECT_FALSE(has(std::string("machines/lock.example/") + name)) << name;
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "made" / "machines"))
    EXPECT_NE(entry.path().filename(), "ca.key") << entry.path();
}

TEST_F(Init, TheReadmeGivesTheServersUserWhatItNeedsAndNoKeyOfANode) {
  ASSERT_EQ(run({"--hosts", "a", "--nodes", "a"}), kOk);
  std::ifstream file(folder_ / "made" / "README");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("chown turnstile: /etc/turnstile/server.key /etc/turnstile/credentials.toml"),
            text.npos)
      << text;
  EXPECT_EQ(text.find("chown -R"), text.npos)
      << "a machine may be server and node, and the plugin's root has no capabilities";
}

TEST_F(Init, WithoutNodesEveryHostIsOne) {
  ASSERT_EQ(run({"--hosts", "a,b"}), kOk);
  EXPECT_TRUE(has("machines/b/server.key"));
  EXPECT_TRUE(has("machines/b/node.key"));
}

TEST_F(Init, KeysAndSecretsAreReadableByTheirOwnerOnly) {
  ASSERT_EQ(run({"--hosts", "a"}), kOk);
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "made")) {
    struct stat status{};
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    const std::string name = entry.path().filename().string();
    if (entry.is_directory()) {
      EXPECT_EQ(status.st_mode & 0777, 0700u) << entry.path();
    }
    if (name.ends_with(".key") || name.ends_with(".secret") || name == "credentials.toml") {
      EXPECT_EQ(status.st_mode & 0777, 0600u) << entry.path();
    }
  }
}

TEST_F(Init, KeepsNoSecretWhereTheServerCanReadIt) {
  ASSERT_EQ(run({"--hosts", "a"}), kOk);
  const std::string secret = text("admin/admin.secret").substr(0, 46);
  EXPECT_TRUE(std::regex_match(secret, std::regex("ts_[A-Za-z0-9_-]{43}"))) << secret;
  EXPECT_EQ(text("machines/a/credentials.toml").find(secret), std::string::npos);
  EXPECT_NE(text("machines/a/credentials.toml").find(sha256_of(secret)), std::string::npos);
}

TEST_F(Init, OverwritesNothing) {
  ASSERT_EQ(run({"--hosts", "a"}), kOk);
  const std::string before = text("ca/ca.key");
  EXPECT_EQ(run({"--hosts", "a"}), kRefused);
  EXPECT_EQ(text("ca/ca.key"), before);
}

TEST_F(Init, RenewsCertificatesForTheSameNamesByTheSameCa) {
  ASSERT_EQ(run({"--hosts", "lock.example,10.0.0.7"}), kOk);
  const std::string ca = text("ca/ca.crt"), server = text("machines/10.0.0.7/server.crt"),
                    key = text("machines/10.0.0.7/server.key");
  ASSERT_EQ(run({"--renew"}), kOk);
  EXPECT_EQ(text("ca/ca.crt"), ca);
  EXPECT_NE(text("machines/10.0.0.7/server.crt"), server);
  EXPECT_NE(text("machines/10.0.0.7/server.key"), key);
  EXPECT_EQ(*names_in(text("machines/10.0.0.7/server.crt")), *names_in(server));
  EXPECT_EQ(*names_in(server), (std::vector<std::string>{"10.0.0.7", "localhost", "127.0.0.1", "::1"}));
}

TEST_F(Init, TakesNoNameThatCouldLeadElsewhere) {
  for (const char* const bad : {"../a", "a/b", "a b", "a\"b", ".", "-a"})
    EXPECT_EQ(run({"--hosts", bad}), kUsage) << bad;
  EXPECT_EQ(run({}), kUsage);
  EXPECT_FALSE(has("README"));
}

TEST_F(Init, RenewsNothingWithoutACa) {
  EXPECT_EQ(run({"--renew"}), kUnexpected);
  EXPECT_NE(error_.find("ca/ca.crt: No such file"), std::string::npos) << error_;
  fs::create_directories(folder_ / "made" / "ca" / "ca.crt");
  EXPECT_EQ(run({"--renew"}), kUnexpected);
  EXPECT_NE(error_.find("ca/ca.crt: Is a directory"), std::string::npos) << error_;
}

TEST(Secret, IsNewEachTimeAndItsHashIsSha256) {
  EXPECT_NE(*new_secret(), *new_secret());
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Credential, PrintsTheSecretAndTheBlockThatHasItsHash) {
  testing::internal::CaptureStdout();
  ASSERT_EQ(run_program({"credential", "new", "ci", "--node", "ci-*,n", "--resource", "build/"}), kOk);
  const std::string out = testing::internal::GetCapturedStdout();
  std::smatch secret;
  ASSERT_TRUE(std::regex_search(out, secret, std::regex("ts_[A-Za-z0-9_-]{43}")));
  EXPECT_NE(out.find("[[credential]]\nname = \"ci\"\nsecret_sha256 = \"" + sha256_of(secret.str()) +
                     "\"\nrole = \"client\"\nnodes = [\"ci-*\", \"n\"]\nresources = [\"build/\"]\n"),
            std::string::npos)
      << out;
}

TEST(Credential, AnAdminSpeaksForNoNode) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_program({"credential", "new", "root", "--role", "admin", "--node", "a"}), kUsage);
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace turnstile::cli
