// What a line of the log looks like, and that nobody who chooses a value can make it look like something
// else.
#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace turnstile {
namespace {

std::string text_of(std::string_view value) { return format_log_line(LogFormat::text, "m", {{"v", value}}); }
std::string json_of(std::string_view value) { return format_log_line(LogFormat::json, "m", {{"v", value}}); }

TEST(Log, PlainValuesStandAsTheyAre) {
  EXPECT_EQ(text_of("sha256:1"), "m v=sha256:1");
  EXPECT_EQ(text_of("größe-漢-😀"), "m v=größe-漢-😀");
  EXPECT_EQ(format_log_line(LogFormat::text, "two words", {{"n", 7}, {"b", true}}), "two words n=7 b=true");
  EXPECT_EQ(format_log_line(LogFormat::json, "two words", {{"n", 7}, {"b", true}}),
            R"("message":"two words","n":7,"b":true)");
}

TEST(Log, ValuesWithBlanksQuotesOrBackslashesAreQuoted) {
  EXPECT_EQ(text_of("a b"), R"(m v="a b")");
  EXPECT_EQ(text_of("a\"b\\"), R"(m v="a\"b\\")");
}

TEST(Log, NoControlCharacterReachesATerminal) {
  EXPECT_EQ(text_of("\x1b[2Jgone"), R"(m v="\u001b[2Jgone")");
  EXPECT_EQ(text_of("\x7f"), R"(m v="\u007f")");
  for (int c = 0; c < 0x20; ++c) {
    const std::string line = text_of(std::string("a") + char(c) + "b");
    EXPECT_EQ(line, fmt::format("m v=\"a\\u{:04x}b\"", c));
  }
}

TEST(Log, NeitherDoesAControlOfC1) {
  EXPECT_EQ(text_of("a\xc2\x9b"
                    "2J"),
            R"(m v="a\u009b2J")");
  EXPECT_EQ(json_of("a\xc2\x9b"
                    "2J"),
            R"("message":"m","v":"a\u009b2J")");
  EXPECT_EQ(text_of("\xc2\xa0"), "m v=\xc2\xa0") << "the first character above them";
}

TEST(Log, BytesThatAreNoUtf8AreReplaced) {
  const char* const wrong[] = {"\x9b", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                               "\xf8", "\xff"};
  for (const char* bytes : wrong) {
    std::string replaced;
    for (const char* at = bytes; *at; ++at) replaced += "\\ufffd";
    EXPECT_EQ(text_of(std::string("a") + bytes), "m v=\"a" + replaced + "\"");
    EXPECT_EQ(json_of(std::string("a") + bytes), "\"message\":\"m\",\"v\":\"a" + replaced + "\"");
  }
}

TEST(Log, AMessageIsQuotedForTheSameReasons) {
  EXPECT_EQ(format_log_line(LogFormat::text, "what \"it\" says", {}), "what \"it\" says");
  EXPECT_EQ(format_log_line(LogFormat::text, "\x1b[31mred\n", {}), R"("\u001b[31mred\u000a")");
}

// Whoever logs is a thread that serves, and the reader may have stopped. A terminal calls itself writable
// although it has no room for a line.
struct Reader {
  const char* name;
  void (*make)(int& reading, int& writing);
};

class StoppedReader : public testing::TestWithParam<Reader> {};

void make_pipe(int& reading, int& writing) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  reading = ends[0], writing = ends[1];
}

void make_socket(int& reading, int& writing) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  reading = ends[0], writing = ends[1];
}

void make_terminal(int& reading, int& writing) {
  reading = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(reading, 0);
  ASSERT_EQ(::grantpt(reading), 0);
  ASSERT_EQ(::unlockpt(reading), 0);
  writing = ::open(::ptsname(reading), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(writing, 0);
}

TEST_P(StoppedReader, IsWaitedForByNobodyAndToldHowMuchItMissed) {
  int reading = -1, writing = -1;
  ASSERT_NO_FATAL_FAILURE(GetParam().make(reading, writing));
  ::fcntl(reading, F_SETFL, O_NONBLOCK);
  std::string read;
  const auto read_all = [&] {
    char part[4096];
    for (ssize_t count; (count = ::read(reading, part, sizeof part)) > 0;) read.append(part, size_t(count));
  };
  const int before = ::dup(STDERR_FILENO);
  ::dup2(writing, STDERR_FILENO);
  std::atomic<bool> is_done = false;
  // So that who waits for a reader all the same fails, and does not hang.
  std::thread rescue([&] {
    for (int i = 0; i < 1000 && !is_done; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (char part[4096]; !is_done;) (void)!::read(reading, part, sizeof part);
  });
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 2000; ++i) log_info("line", {{"text", std::string(i % 7 == 0 ? 6000 : 100, 'x')}});
  const auto took = std::chrono::steady_clock::now() - began;
  is_done = true;
  rescue.join();
  // A terminal has room again a moment after it was read.
  for (int i = 0; i < 1000 && !read.contains("the last one"); ++i) {
    read_all();
    log_info("the last one");
    read_all();
  }
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(writing);
  read_all();
  ::close(reading);
  EXPECT_LT(took, std::chrono::seconds(10));
  EXPECT_TRUE(read.contains("\n")) << "what there is room for is written";
  const size_t lost = read.find("lines of the log were lost");
  ASSERT_NE(lost, read.npos);
  const size_t line = read.rfind('\n', lost);
  EXPECT_FALSE(std::string_view(read).substr(line, lost - line).contains('x')) << "it has a line of its own";
  EXPECT_TRUE(read.find("the last one", lost) != read.npos);
  EXPECT_TRUE(read.ends_with('\n'));
}
INSTANTIATE_TEST_SUITE_P(Of, StoppedReader,
                         testing::Values(Reader{"APipe", make_pipe}, Reader{"ASocket", make_socket},
                                         Reader{"ATerminal", make_terminal}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace turnstile
