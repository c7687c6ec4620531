// How values look: durations, ages, sizes, tables.
#include "cli/format.h"

#include <gtest/gtest.h>

#include "client/wall_time.h"

namespace turnstile::cli {
namespace {

using namespace std::chrono_literals;

WallTime at(std::string_view text) { return client::parse_wall_time(text).value_or(WallTime{}); }

TEST(Format, DurationsAreANumberWithAUnit) {
  EXPECT_EQ(*parse_duration("500ms"), 500ms);
  EXPECT_EQ(*parse_duration("10s"), 10s);
  EXPECT_EQ(*parse_duration("1.5m"), 90s);
  EXPECT_EQ(*parse_duration("2h"), 2h);
  EXPECT_EQ(*parse_duration("1d"), 24h);
  EXPECT_EQ(*parse_duration("0"), 0ms);
  for (const char* wrong :
       {"", "10", "s", "-1s", "1 s", "1sec", "nan", "nans", "infs", "1e300h", "10s ", "5M"}) {
    ASSERT_FALSE(parse_duration(wrong)) << wrong;
    EXPECT_NE(parse_duration(wrong).error().message.find("is not a duration"), std::string::npos);
  }
}

TEST(Format, DurationsAreShownInTheirTwoLargestUnits) {
  EXPECT_EQ(show_duration(850ms), "850ms");
  EXPECT_EQ(show_duration(12'300ms), "12s");
  EXPECT_EQ(show_duration(200s), "3m 20s");
  EXPECT_EQ(show_duration(1h), "1h");
  EXPECT_EQ(show_duration(52h), "2d 4h");
  EXPECT_EQ(show_duration(-5s), "0ms");
}

TEST(Format, AgesAreNeverNegativeForClocksDiffer) {
  const WallTime now = at("2026-11-16T01:38:13.047765Z");
  EXPECT_EQ(show_age(at("2026-11-16T01:36:00Z"), now), "2m 13s");
  EXPECT_EQ(show_age(at("2026-11-16T01:39:00Z"), now), "0ms");
  EXPECT_EQ(show_age(at("2024-02-29T00:00:00Z"), at("2024-03-01T00:00:00Z")), "1d");
  for (const char* wrong :
       {"", "yesterday", "2026-13-16T01:38:13Z", "2026-11-16T01:38:13", "2026-02-30T01:38:13Z"}) {
    EXPECT_EQ(show_age(at(wrong), now), "-") << wrong;
  }
}

TEST(Format, ProgressIsAPercentageWhereTheTotalIsKnown) {
  EXPECT_EQ(show_progress(std::nullopt, std::nullopt), "");
  EXPECT_EQ(show_progress(500, std::nullopt), "500");
  EXPECT_EQ(show_progress(1'200'000'000, 2'900'000'000), "41% (1.2G of 2.9G)");
  EXPECT_EQ(show_progress(7, 0), "7");
  EXPECT_EQ(show_progress(20, 10), "100% (20 of 10)");
  EXPECT_EQ(show_bytes(999'950), "1.0M");
}

TEST(Format, AForeignTextNeitherBreaksALineNorDrivesTheTerminal) {
  EXPECT_EQ(one_line("a\nb\033[2Jc\x7f"), "a b [2Jc ");
  EXPECT_EQ(one_line("\xC2\x9B"  // CSI in one character
                     "31m\xFFé"),
            " 31m\uFFFDé");
}

TEST(Format, AShortenedTextKeepsBothEndsAndWholeCharacters) {
  EXPECT_EQ(shortened("sha256:0123456789abcdef", 11), "sha25…bcdef");
  EXPECT_EQ(shortened("äöüßäöüß", 5), "äö…üß");
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(display_width(shortened("äöüßäöüß", 4)), 4U);
}

TEST(Format, ColumnsAreAlignedByCharactersNotBytes) {
  Table table({"NODE", "N", "NOTE"});
  table.add({"größe", "10", ""});
  table.add({"a", "2", "x"});
  EXPECT_EQ(table.text(),
            "NODE   N   NOTE\n"
            "größe  10\n"
            "a      2   x\n");
}

TEST(Format, WideCharactersTakeTwoColumnsAndMarksNone) {
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("🙂x"), 3U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
  EXPECT_EQ(display_width("\xff\xfe"), 2U);
  EXPECT_EQ(front_of("日本x", 3), "日");
  EXPECT_EQ(shortened("日本語日本語", 7), "日…語");
  for (size_t width = 0; width < 14; ++width)
    EXPECT_LE(display_width(shortened("a日b本c語🙂e\u0301", width)), width);
}

TEST(Format, ATimeThatWasReadIsWrittenAsItWas) {
  for (const char* text :
       {"2026-11-16T01:38:13.047765Z", "1970-01-01T00:00:00.000001Z", "2024-02-29T23:59:59.999999Z"}) {
    EXPECT_EQ(client::show_wall_time(at(text)), text);
  }
}

}  // namespace
}  // namespace turnstile::cli
