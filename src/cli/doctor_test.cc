// What doctor makes of files on this machine.
#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"

namespace turnstile::cli {
namespace {

using testing::HasSubstr;
using Level = Finding::Level;

class DoctorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "turnstile-doctor-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::vector<Finding> with(const std::string& settings) {
    std::ofstream(root_ / "config.toml") << settings;
    return check_containerd(root_ / "config.toml");
  }
  std::string socket_path() const { return root_ / "content.sock"; }

  std::filesystem::path root_;
};

constexpr const char* kGood = R"(version = 2
disabled_plugins = ["io.containerd.content.v1.content"]  # ours instead
[plugins."io.containerd.grpc.v1.cri"]
  type = "not ours"
[proxy_plugins.turnstile]
  type = "content"
  address = "{}"
)";

std::string with_address(const std::string& address) {
  std::string text = kGood;
  return text.replace(text.find("{}"), 2, address);
}

TEST(ContainerdSettings, ProxyPluginsAndTheDisabledStoreAreFound) {
  const ContainerdSettings settings = parse_containerd_settings(with_address("/run/x.sock"));
  ASSERT_EQ(settings.proxies.size(), 1u);
  EXPECT_EQ(settings.proxies[0].name, "turnstile");
  EXPECT_EQ(settings.proxies[0].type, "content");
  EXPECT_EQ(settings.proxies[0].address, "/run/x.sock");
  EXPECT_TRUE(settings.built_in_disabled);
}

TEST(ContainerdSettings, ListsOfSeveralLinesOtherQuotesAndCommentsAreUnderstood) {
  const ContainerdSettings settings = parse_containerd_settings(
      "disabled_plugins = [\n  'a', # ]\n  'io.containerd.content.v1.content',\n]\n"
      "[proxy_plugins.\"my-own\"]\n type='snapshot'\n#[proxy_plugins.off]\n# type = \"content\"\n"
      "[other]\ndisabled_plugins = [\"x\"]\n");
  EXPECT_TRUE(settings.built_in_disabled);
  ASSERT_EQ(settings.proxies.size(), 1u);
  EXPECT_EQ(settings.proxies[0].name, "my-own");
  EXPECT_EQ(settings.proxies[0].type, "snapshot");
  EXPECT_FALSE(parse_containerd_settings("# disabled_plugins = [\"io.containerd.content.v1.content\"]\n")
                   .built_in_disabled);
}

TEST_F(DoctorTest, AContainerdThatUsesThePluginIsGood) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path().c_str(), sizeof address.sun_path - 1);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto findings = with(with_address(socket_path()));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].level, Level::good) << findings[0].message;
}

TEST_F(DoctorTest, EveryFaultOfContainerdsSettingsSaysWhatToDo) {
  const auto only = [&](const std::string& settings) {
    const auto findings = with(settings);
    EXPECT_EQ(findings.size(), 1u);
    EXPECT_FALSE(findings.front().advice.empty());
    return findings.front();
  };
  EXPECT_EQ(only("version = 2\n").level, Level::note);  // it does not use the plugin, which is no fault
  Finding found = only(with_address(socket_path()));
  EXPECT_EQ(found.level, Level::failure);
  EXPECT_THAT(found.message, HasSubstr("there is no socket"));
  std::ofstream(socket_path()) << "no socket";
  EXPECT_THAT(only(with_address(socket_path())).message, HasSubstr("is no socket"));
  EXPECT_THAT(only(with_address("content.sock")).message, HasSubstr("no absolute path"));
  std::string both = with_address("/");
  both.replace(both.find("disabled_plugins"), 16, "enabled_plugins_");
  EXPECT_THAT(with(both).front().message, HasSubstr("built-in content store is on"));
  EXPECT_THAT(with(with_address("/") + "[proxy_plugins.two]\ntype = \"content\"\n").front().message,
              HasSubstr("more than one"));
  EXPECT_EQ(check_containerd(root_ / "nothing").front().level, Level::note);
}

TEST_F(DoctorTest, ADirectoryThatCanBeSharedIsLeftAsItWas) {
  const auto findings = check_shared_directory(root_);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1].level, Level::good) << findings[1].message;
  EXPECT_TRUE(std::filesystem::is_empty(root_));
  EXPECT_EQ(check_shared_directory(root_ / "nothing").front().level, Level::failure);
  std::ofstream(root_ / "file") << "x";
  EXPECT_EQ(check_shared_directory(root_ / "file").front().level, Level::failure);
}

TEST_F(DoctorTest, ADirectoryWithoutHardLinksIsAWarningAndIsLeftAsItWas) {
  const auto without = check_shared_directory(root_, [](const char*, const char*) {
    errno = EPERM;
    return -1;
  });
  ASSERT_EQ(without.size(), 2u);
  EXPECT_EQ(without[1].level, Level::warning) << without[1].message;
  EXPECT_THAT(without[1].advice, HasSubstr("--settled-after"));
  EXPECT_TRUE(std::filesystem::is_empty(root_));
  const auto broken = check_shared_directory(root_, [](const char*, const char*) {
    errno = EIO;
    return -1;
  });
  EXPECT_EQ(broken[1].level, Level::failure);
}

TEST(DoctorMounts, AnNfsThatRemembersWhatIsMissingIsAWarning) {
  const auto found = [](const std::string& options) { return check_mount("d", {"/srv", "nfs4", options}); };
  EXPECT_EQ(found("rw,hard,lookupcache=pos,vers=4.2").level, Level::good);
  EXPECT_EQ(found("rw,hard,lookupcache=none").level, Level::good);
  EXPECT_EQ(found("rw,hard,vers=4.2").level, Level::warning) << "lookupcache=all is not shown";
  EXPECT_THAT(found("rw,hard,vers=4.2").advice, HasSubstr("lookupcache=positive"));
  EXPECT_EQ(found("rw,soft,lookupcache=pos").level, Level::failure);
}

TEST(DoctorMounts, AMergerfsThatCachesIsAWarningAndOneThatDoesNotSayIsNotCalledGood) {
  const Mount mount{"/srv/all", "fuse.mergerfs", "rw,relatime"};
  const auto with = [&](MergerfsOption option_of) { return check_mount("d", mount, option_of); };
  const Finding off = with([](const std::string&, std::string_view name) {
    return std::optional<std::string>(name == "cache.files" ? "off" : "false");
  });
  EXPECT_EQ(off.level, Level::note);
  EXPECT_THAT(off.message, HasSubstr("caches no files"));
  const Finding caches = with([](const std::string&, std::string_view name) {
    return std::optional<std::string>(name == "cache.files" ? "libfuse" : "false");
  });
  EXPECT_EQ(caches.level, Level::warning);
  EXPECT_THAT(caches.message, HasSubstr("cache.files=libfuse"));
  EXPECT_THAT(caches.advice, HasSubstr("cache.files=off"));
  const Finding silent =
      with([](const std::string&, std::string_view) { return std::optional<std::string>(); });
  EXPECT_EQ(silent.level, Level::note);
  EXPECT_THAT(silent.message, HasSubstr("cannot tell"));
}

TEST(DoctorVersions, TheSameMinorVersionWorksTogether) {
  EXPECT_EQ(check_versions("s", "0.1.0", "0.1.0").level, Level::good);
  EXPECT_EQ(check_versions("s", "0.1.0", "0.1.7").level, Level::good);
  EXPECT_EQ(check_versions("s", "0.1.0", "0.2.0").level, Level::warning);
  EXPECT_EQ(check_versions("s", "1.1.0", "0.1.0").level, Level::warning);
  EXPECT_EQ(check_versions("s", "0.1.0", "0.10.0").level, Level::warning);
}

}  // namespace
}  // namespace turnstile::cli
