// Which bytes are characters, and what a text is without the others.
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

TEST(Utf8, TellsCharactersFromOtherBytes) {
  EXPECT_TRUE(is_utf8("") && is_utf8("aü日🙂") && is_utf8(std::string_view("\0", 1)));
  for (const char* bad : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\x80"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
    EXPECT_TRUE(is_utf8(to_utf8(bad)));
  }
}

TEST(Utf8, BytesThatAreNoneAreReplacedOneByOne) {
  EXPECT_EQ(to_utf8("a\xff\xc3z"), "a\uFFFD\uFFFDz");
  EXPECT_EQ(to_utf8("aü日🙂"), "aü日🙂");
}

TEST(Utf8, ALongTextIsCutBetweenCharacters) {
  EXPECT_EQ(to_utf8("日本", 6), "日本");
  EXPECT_EQ(to_utf8("日本", 5), "日");
  EXPECT_EQ(to_utf8("\xff\xff", 3), "\uFFFD");
  EXPECT_EQ(to_utf8("abc", 0), "");
}

}  // namespace
}  // namespace turnstile
