#include "api/json_append.h"

#include "api/test_body.h"

namespace turnstile {
namespace {

std::string json_of(std::string_view text) {
  std::string out;
  append_json_text(out, text);
  return out;
}

TEST(JsonAppend, PlainTextAndUtf8PassAsTheyAre) {
  EXPECT_EQ(json_of(""), R"("")");
  EXPECT_EQ(json_of("sha256:0123456789abcdef"), R"("sha256:0123456789abcdef")");
  EXPECT_EQ(json_of("é нода 😀"), R"("é нода 😀")");
}

TEST(JsonAppend, WhatCouldBreakAStringOrATerminalIsEscaped) {
  EXPECT_EQ(json_of("a\"b"), R"("a\"b")");
  EXPECT_EQ(json_of("a\\b"), R"("a\\b")");
  EXPECT_EQ(json_of("\n\r\t"), R"("\n\r\t")");
  EXPECT_EQ(json_of(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
}

TEST(JsonAppend, EveryByteAtEveryPlaceComesBack) {
  for (unsigned byte = 0; byte < 0x80; ++byte)
    for (size_t at = 0; at < 20; ++at) {
      std::string text(20, 'x');
      text[at] = char(byte);
      const std::string written = json_of(text);
      const Parsed parsed("[" + written + "]");
      EXPECT_EQ(parsed.text("/0"), text) << byte << " at " << at;
      for (const char c : written) EXPECT_TRUE(uint8_t(c) >= 0x20 && c != 0x7f) << byte << " at " << at;
    }
}

TEST(JsonAppend, ListsOfTextsAreArrays) {
  std::string out;
  append_texts_field(out, "", {});
  EXPECT_EQ(out, "[]");
  out.clear();
  const std::string_view texts[] = {"a", "[", "c\""};
  append_texts_field(out, R"("x":)", texts);
  EXPECT_EQ(out, R"("x":["a","[","c\""])");
}

}  // namespace
}  // namespace turnstile
