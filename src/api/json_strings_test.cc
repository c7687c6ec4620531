// Strictness inside strings, by texts that a loop makes: every byte, every escape, every kind of UTF-8
// sequence, at every place of the blocks in which simdjson reads.
#include <fmt/format.h>

#include <array>

#include "api/test_json_grammar.h"

namespace turnstile {
namespace {

std::string in_quotes(std::string_view inside) { return '"' + std::string(inside) + '"'; }

// As `info`, a known field, arrives; nullopt if the request is refused.
class InfoReader {
 public:
  std::optional<std::string> read(std::string_view inside) {
    body_.emplace(R"({"type":"t","resource_id":"r","node_id":"n","info":)" + in_quotes(inside) + "}");
    const auto request = parser_.parse_lock(body_->view());
    if (!request) return std::nullopt;
    return std::string(request->command.info);
  }

 private:
  RequestParser parser_;
  std::optional<Body> body_;
};

std::string utf8_of(uint32_t code) {
  const auto tail = [code](int shift) { return char(0x80 | (code >> shift & 63)); };
  if (code < 0x80) return {char(code)};
  if (code < 0x800) return {char(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {char(0xe0 | code >> 12), tail(6), tail(0)};
  return {char(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

TEST(JsonStrings, EveryByteAloneIsJudgedAsTheGrammarDoes) {
  Strictness strict;
  for (int byte = 0; byte < 256; ++byte) {
    const bool whole = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
    strict.expect(in_quotes(std::string(1, char(byte))), whole);
    strict.expect('{' + in_quotes(std::string(1, char(byte))) + ":1}", whole);
  }
}

TEST(JsonStrings, EveryEscapeIsJudgedAsTheGrammarDoes) {
  Strictness strict;
  InfoReader info;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string escape{'\\', char(byte)};
    strict.expect(in_quotes(escape), std::string_view("\"\\/bfnrt").contains(char(byte)) && byte != 0);
    strict.expect_as_grammar(in_quotes("\\" + escape));
    strict.expect_as_grammar(in_quotes("\\\\" + escape));
  }
  EXPECT_EQ(info.read(R"(\"\\\/\b\f\n\r\t)"), "\"\\/\b\f\n\r\t");
}

TEST(JsonStrings, AnOddNumberOfBackslashesTakesTheQuoteAwayAtEveryPlaceOfABlock) {
  Strictness strict;
  for (size_t before = 0; before < 130; ++before)
    for (size_t count = 0; count < 6; ++count)
      strict.expect(in_quotes(std::string(before, 'x') + std::string(count, '\\')), count % 2 == 0);
}

TEST(JsonStrings, EveryCodeUnitByItsNumberArrivesAsItsCharacterAndHalfOnesAreRefused) {
  InfoReader info;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const bool half = code >= 0xd800 && code < 0xe000;
    const std::optional<std::string> expected = half ? std::nullopt : std::optional(utf8_of(code));
    ASSERT_EQ(info.read(fmt::format("\\u{:04x}", code)), expected) << code;
    ASSERT_EQ(info.read(fmt::format("\\u{:04X}x", code)), half ? expected : *expected + "x") << code;
  }
}

TEST(JsonStrings, HighAndLowHalfMakeOneCharacterAndNothingElseDoes) {
  InfoReader info;
  for (uint32_t high = 0xd800; high < 0xdc00; ++high) {
    for (const uint32_t low : {0xdc00U, 0xdc01U, 0xdd55U, 0xdfffU}) {
      const uint32_t code = 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
      ASSERT_EQ(info.read(fmt::format("\\u{:04x}\\u{:04X}", high, low)), utf8_of(code)) << high << low;
    }
    for (const uint32_t other : {0x0000U, 0x0041U, 0xd7ffU, 0xd800U, 0xdbffU, 0xe000U, 0xffffU})
      ASSERT_EQ(info.read(fmt::format("\\u{:04x}\\u{:04x}", high, other)), std::nullopt) << high << other;
    for (const std::string_view behind :
         {"", "x", "\\n", "\\", "\\u", "\\udc0", "\\udc0g", "\\\\udc00", "udc00", "\xed\xb0\x80"})
      ASSERT_EQ(info.read(fmt::format("\\u{:04x}{}", high, behind)), std::nullopt) << high << behind;
  }
}

TEST(JsonStrings, FourHexDigitsMustFollowAndNoOtherByteIsOne) {
  Strictness strict;
  for (const std::string digits : {"", "0", "00", "00e", "00e9", "00e90"})
    strict.expect_as_grammar(in_quotes("\\u" + digits));
  for (size_t at = 0; at < 4; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string digits = "0041";
      digits[at] = char(byte);
      strict.expect_as_grammar(in_quotes("\\u" + digits));
    }
  }
  EXPECT_GT(strict.taken(), 80u);
}

TEST(JsonStrings, EveryPairOfBytesIsJudgedAsTheGrammarDoes) {
  Strictness strict;
  for (int first = 0x80; first < 256; ++first)
    for (int second = 0; second < 256; ++second)
      strict.expect_as_grammar(in_quotes(std::string{char(first), char(second)}));
  EXPECT_EQ(strict.taken(), 30u * 64u) << "c2 to df, each with 80 to bf";
}

// The first and last bytes of each class that RFC 3629 knows, and their neighbours.
constexpr std::array<uint8_t, 10> kEdges{0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};

TEST(JsonStrings, LongerSequencesAreJudgedAsTheGrammarDoes) {
  Strictness strict;
  for (int lead = 0xe0; lead < 256; ++lead) {
    for (const uint8_t second : kEdges) {
      for (const uint8_t third : kEdges) {
        const std::string three{char(lead), char(second), char(third)};
        strict.expect_as_grammar(in_quotes(three));
        for (const uint8_t fourth : kEdges) strict.expect_as_grammar(in_quotes(three + char(fourth)));
      }
    }
  }
  EXPECT_GT(strict.taken(), 1'000u);
  EXPECT_GT(strict.refused(), 20'000u);
}

TEST(JsonStrings, ABadByteIsFoundAtEveryPlaceOfABlock) {
  const std::array<std::string, 9> kinds{
      "\x80",              // continues nothing
      "\xc3",              // is not continued
      "\xc0\xaf",          // longer than need be: two bytes,
      "\xe0\x80\xaf",      // three
      "\xf0\x80\x80\xaf",  // and four
      "\xed\xa0\x80",      // half a character
      "\xf4\x90\x80\x80",  // behind the last character
      "\xff",              // never
      "\x1f",              // a control character
  };
  Strictness strict;
  for (size_t before = 0; before < 130; ++before) {
    for (const std::string& bad : kinds)
      strict.expect(in_quotes(std::string(before, 'x') + bad + "xyz"), false);
    for (const std::string_view good : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x94\x92", "\x7f"})
      strict.expect(in_quotes(std::string(before, 'x') + std::string(good) + "xyz"), true);
    for (const std::string& bad : kinds)  // outside of strings, too
      EXPECT_FALSE(strict.takes(lock_with_unknown(std::string(before, ' ') + bad + "1"))) << before;
  }
}

}  // namespace
}  // namespace turnstile
