// Which settings file is read, and what becomes of one that cannot be.
#include "cli/settings_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/program.h"

namespace turnstile::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SettingsFileTest : public testing::Test {
 protected:
  SettingsFileTest() {
    char name[] = "/tmp/turnstile-settings-XXXXXX";
    home_ = ::mkdtemp(name);
    fs::create_directory(home_ / ".config");
  }
  ~SettingsFileTest() override { fs::remove_all(home_); }

  Result<std::string> find() const { return find_settings_file("", environment(home_)); }
  static Environment environment(const fs::path& home) {
    return [home](const std::string& name) {
      return name == "HOME" ? std::optional(home.string()) : std::nullopt;
    };
  }
  // One that even root cannot enter.
  void close_folder() const { fs::create_symlink("turnstile", folder()); }
  fs::path folder() const { return home_ / ".config" / "turnstile"; }
  fs::path file() const { return folder() / "turnstile.toml"; }

  fs::path home_;
};

TEST_F(SettingsFileTest, TheUsersOwnIsFoundAndNoneIsNoFault) {
  const Result<std::string> none = find();
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(none->starts_with(home_.string()));
  fs::create_directory(folder());
  std::ofstream(file()) << "server = 'http://a:1'\n";
  EXPECT_EQ(*find(), file());
  EXPECT_TRUE(find_settings_file("", environment("/dev/null"))) << "a home that is no directory";
}

TEST_F(SettingsFileTest, OneBehindAClosedFolderIsNotPassedOver) {
  close_folder();
  const Result<std::string> found = find();
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr(file().string()));
  EXPECT_THAT(found.error().message, HasSubstr("--config"));
}

TEST_F(SettingsFileTest, OneThatCannotBeReadEndsOnlyWhatAsksAServer) {
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--config", file().string()});
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = run_program(words);
    testing::internal::GetCapturedStdout();
    return std::pair<int, std::string>(code, testing::internal::GetCapturedStderr());
  };
  const std::pair<int, std::string> fine(kOk, "");
  EXPECT_EQ(run({"completion", "bash"}), fine);
  EXPECT_EQ(run({"credential", "new", "ci"}), fine);
  EXPECT_EQ(run({"init", (home_ / "made").string(), "--hosts", "a"}), fine);
  for (const std::vector<std::string>& asks :
       {std::vector<std::string>{"status"},
        {"list", "--server", "http://127.0.0.1:1"},
        {"doctor"},
        {"top", "--once"},
        {"bench"},
        {"exec", "mutex", "r", "--", "true"},
        {"backup", "http://127.0.0.1:1", (home_ / "backup").string()}}) {
    const auto [code, error] = run(asks);
    EXPECT_EQ(code, kUsage) << asks.front();
    EXPECT_THAT(error, HasSubstr(file().string())) << asks.front();
  }
}

}  // namespace
}  // namespace turnstile::cli
