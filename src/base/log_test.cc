// What a line of the log looks like, and that nobody who chooses a value can make it look like something
// else.
#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>

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

// Whoever logs is a thread that serves, and the reader may have stopped.
TEST(Log, NobodyWaitsForAReaderThatHasStoppedAndItIsToldHowMuchItMissed) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 2000; ++i) log_info("line", {{"text", std::string(i % 7 == 0 ? 6000 : 100, 'x')}});
  const auto took = std::chrono::steady_clock::now() - began;
  std::string read(1 << 20, '\0');
  read.resize(size_t(::read(ends[0], read.data(), read.size())));
  log_info("the last one");
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(ends[1]);
  std::string rest(1 << 20, '\0');
  for (ssize_t count; (count = ::read(ends[0], rest.data(), rest.size())) > 0;)
    read.append(rest, 0, size_t(count));
  ::close(ends[0]);
  EXPECT_LT(took, std::chrono::seconds(10));
  EXPECT_TRUE(read.contains("\n")) << "what there is room for is written";
  const size_t lost = read.find("lines of the log were lost");
  ASSERT_NE(lost, read.npos);
  const size_t line = read.rfind('\n', lost);
  EXPECT_FALSE(std::string_view(read).substr(line, lost - line).contains('x')) << "it has a line of its own";
  EXPECT_TRUE(read.find("the last one", lost) != read.npos);
  EXPECT_TRUE(read.ends_with('\n'));
}

}  // namespace
}  // namespace turnstile
