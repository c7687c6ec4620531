#include "access/audit_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace turnstile::access {
namespace {

const AuditEntry kEntry{"refused", "node-a", "10.0.0.1", "/lock", "sha256:1\n\"x\"", "node-b", "forbidden"};

class AuditLogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/audit-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const char* name) const { return directory_ + "/" + name; }
  static std::vector<std::string> lines(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> found;
    for (std::string line; std::getline(file, line);) found.push_back(line);
    return found;
  }

  std::string directory_;
};

TEST_F(AuditLogTest, AFileGetsALineOfJsonForEach) {
  {
    auto log = AuditLog::open(path("audit"));
    ASSERT_TRUE(log) << log.error().message;
    (*log)->write(kEntry);
    (*log)->write(kEntry);
  }
  const auto written = lines(path("audit"));
  ASSERT_EQ(written.size(), 2u);
  EXPECT_TRUE(written[0].starts_with("{\"time\":\"20")) << written[0];
  const std::string rest = written[0].substr(written[0].find(",\"message\""));
  EXPECT_EQ(rest, R"(,"message":"refused","name":"node-a","address":"10.0.0.1","call":"/lock",)"
                  R"("resource":"sha256:1\u000a\"x\"","node":"node-b","outcome":"forbidden","count":1})");
}

TEST_F(AuditLogTest, AFileThatWasMovedAwayIsMadeAnew) {
  auto log = AuditLog::open(path("audit"));
  ASSERT_TRUE(log);
  (*log)->write(kEntry);
  while (lines(path("audit")).empty()) std::this_thread::yield();
  std::filesystem::rename(path("audit"), path("audit.1"));
  (*log)->reopen();
  (*log)->write(kEntry);
  log->reset();
  EXPECT_EQ(lines(path("audit.1")).size(), 1u);
  EXPECT_EQ(lines(path("audit")).size(), 1u);
}

TEST_F(AuditLogTest, NobodyFillsTheDiskWithHisRefusals) {
  const std::string long_path(1000, 'a');
  const AuditEntry stranger{"refused", {}, "10.0.0.9", long_path, {}, {}, "foreign_origin"};
  {
    auto log = AuditLog::open(path("audit"));
    ASSERT_TRUE(log);
    for (int i = 0; i < 5'000; ++i) (*log)->write(stranger);
    for (int i = 0; i < 500; ++i) (*log)->write(kEntry);  // somebody who is known is listed each time
  }
  uint64_t strangers = 0, listed = 0, known = 0;
  for (const std::string& line : lines(path("audit"))) {
    EXPECT_LT(line.size(), 400u);
    if (line.find("\"node-a\"") != line.npos) {
      ++known;
      continue;
    }
    ++listed;
    strangers += std::stoull(line.substr(line.find("\"count\":") + 8));
  }
  EXPECT_EQ(known, 500u);
  EXPECT_EQ(strangers, 5'000u) << "each is counted";
  EXPECT_GE(listed, 200u);
  EXPECT_LT(listed, 1'500u) << "as many as come at once, and ten for each second that this took";
}

TEST_F(AuditLogTest, WhereTheFileCannotBeMadeItSaysSo) {
  EXPECT_NE(AuditLog::open(path("no/audit")).error().message.find("cannot be opened"), std::string::npos);
}

TEST_F(AuditLogTest, TheJournalGetsADatagramForEach) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path("socket").c_str(), sizeof address.sun_path - 1);
  const UniqueFd journal(::socket(AF_UNIX, SOCK_DGRAM, 0));
  ASSERT_EQ(::bind(journal.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  auto log = AuditLog::open("journal", path("socket"));
  ASSERT_TRUE(log) << log.error().message;
  (*log)->write(kEntry);
  char buffer[4096];
  const ssize_t size = ::recv(journal.get(), buffer, sizeof buffer, 0);
  ASSERT_GT(size, 0);
  const std::string text(buffer, size_t(size));
  EXPECT_TRUE(text.starts_with("MESSAGE={\"time\"")) << text;
  EXPECT_NE(text.find("\nSYSLOG_IDENTIFIER=turnstiled-audit\n"), text.npos);
  EXPECT_FALSE(AuditLog::open("journal", path("nobody")));
}

// Nobody reads the pipe, so the thread stands still with the first lines.
TEST_F(AuditLogTest, AStuckDiskCostsLinesAndNeverTime) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const UniqueFd reader(::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK));
  auto log = AuditLog::open(path("pipe"));
  ASSERT_TRUE(log) << log.error().message;
  for (size_t i = 0; i < 3 * AuditLog::kMostWaiting; ++i) (*log)->write(kEntry);
  EXPECT_GT((*log)->dropped(), 0u);
  char buffer[65536];
  std::jthread drain([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) (void)::read(reader.get(), buffer, sizeof buffer);
  });
  log->reset();
}

TEST_F(AuditLogTest, ALineThatAFullDiskCutsOffDoesNotSpoilTheNext) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto signal = std::signal(SIGXFSZ, SIG_IGN);
  {
    auto log = AuditLog::open(path("audit"));
    ASSERT_TRUE(log);
    const rlimit full{.rlim_cur = 250, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
    (*log)->write(kEntry);
    (*log)->write(kEntry);
    while ((*log)->dropped() == 0) std::this_thread::yield();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    (*log)->write(kEntry);
  }
  std::signal(SIGXFSZ, signal);
  const auto written = lines(path("audit"));
  ASSERT_EQ(written.size(), 3u);
  EXPECT_TRUE(written[0].ends_with("}"));
  EXPECT_FALSE(written[1].ends_with("}"));
  EXPECT_TRUE(written[2].starts_with("{\"time\":") && written[2].ends_with("}")) << written[2];
}

// Whoever reads the new one wants a line of JSON in each; the old one, opened again, goes on behind its part.
TEST_F(AuditLogTest, OnlyTheFileThatEndsWithinALineGetsAnEmptyOneFirst) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto signal = std::signal(SIGXFSZ, SIG_IGN);
  for (const bool moved : {false, true}) {
    std::filesystem::remove(path("audit"));
    auto log = AuditLog::open(path("audit"));
    ASSERT_TRUE(log);
    const rlimit full{.rlim_cur = 100, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
    (*log)->write(kEntry);
    while ((*log)->dropped() == 0) std::this_thread::yield();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    if (moved) std::filesystem::rename(path("audit"), path("audit.1"));
    (*log)->reopen();
    (*log)->write(kEntry);
    log->reset();
    const auto written = lines(path("audit"));
    ASSERT_EQ(written.size(), moved ? 1u : 2u);
    EXPECT_TRUE(written.back().starts_with("{\"time\":") && written.back().ends_with("}")) << written.back();
  }
  std::signal(SIGXFSZ, signal);
}

TEST_F(AuditLogTest, OffWritesNothing) {
  auto log = AuditLog::open("off");
  (*log)->write(kEntry);
  EXPECT_FALSE((*log)->is_on());
}

}  // namespace
}  // namespace turnstile::access
