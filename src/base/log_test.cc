// What a line of the log looks like, and that nobody who chooses a value can make it look like something
// else.
#include "base/log.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace turnstile
