// Strictness, by texts that a loop makes: the parser takes what the grammar takes (test_json_grammar.h) and
// nothing else. Structure, numbers and words are here, strings in json_strings_test.cc.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <span>

#include "api/test_json_grammar.h"

namespace turnstile {
namespace {

using testing::HasSubstr;

// A request with everything in it that JSON has.
constexpr std::string_view kBody =
    R"({"type":"pull", "resource_id":"r\u00e9\/","node_id":"n","wait_ms":12,"x":[-1.5e+3,0,{"":null}],)"
    R"("monitor":true,"y":{"a":[],"b":{}},"info":"caf)"
    "\xc3\xa9 \xf0\x9f\x94\x92\" }";

// Every sequence of up to `longest` of these, the empty one first.
template <class Visit>
void for_each_sequence(std::span<const std::string_view> alphabet, size_t longest, const Visit& visit,
                       const std::string& begun = {}) {
  visit(begun);
  if (longest == 0) return;
  for (const std::string_view token : alphabet)
    for_each_sequence(alphabet, longest - 1, visit, begun + std::string(token));
}

TEST(JsonGrammar, EverySequenceOfFiveTokensIsJudgedAsTheGrammarDoes) {
  constexpr std::array<std::string_view, 10> kTokens{"{", "}", "[", "]", ",", ":", "\"a\"", "1", "true", " "};
  Strictness strict;
  for_each_sequence(kTokens, 5, [&](const std::string& text) { strict.expect_as_grammar(text); });
  EXPECT_GT(strict.taken(), 150u);
  EXPECT_GT(strict.refused(), 100'000u);
}

TEST(JsonGrammar, EverySequenceOfSixCharactersOfNumbersIsJudgedAsTheGrammarDoes) {
  constexpr std::array<std::string_view, 7> kCharacters{"0", "7", "-", "+", ".", "e", "E"};
  Strictness strict;
  for_each_sequence(kCharacters, 6, [&](const std::string& text) {
    // What is too large for a double is another test's.
    const size_t exponent = text.find_first_of("eE");
    if (exponent == std::string::npos || text.size() - exponent <= 3) strict.expect_as_grammar(text);
  });
  EXPECT_GT(strict.taken(), 200u);
  EXPECT_GT(strict.refused(), 50'000u);
}

TEST(JsonGrammar, NumbersBeyondWhatIntegersAndDoublesHoldAreRefused) {
  Strictness strict;
  for (const std::string_view held :
       {"9223372036854775807", "18446744073709551615", "-9223372036854775808", "1e308", "-1e308", "1e-400",
        "0e999", "0.00000000000000000000000000000000000000000000000000000000000000000001"})
    strict.expect(held, true);
  for (const std::string_view beyond :
       {"18446744073709551616", "-9223372036854775809", "1e309", "-1e309", "123456789012345678901234567890"})
    EXPECT_FALSE(strict.takes(lock_with_unknown(beyond))) << beyond;
}

TEST(JsonGrammar, WordsAreTakenOnlyLetterByLetter) {
  Strictness strict;
  for (const std::string word : {"true", "false", "null"}) {
    strict.expect(word, true);
    for (size_t at = 0; at < word.size(); ++at) {
      strict.expect(word.substr(0, at), false);
      for (int byte = 0; byte < 256; ++byte) {
        std::string other = word;
        other[at] = char(byte);
        strict.expect_as_grammar(other);
        strict.expect_as_grammar(word.substr(0, at) + char(byte) + word.substr(at));
      }
    }
  }
  for (const std::string_view word : {"True", "NULL", "NaN", "Infinity", "-Infinity", "undefined", "0x10"})
    strict.expect(word, false);
}

TEST(JsonGrammar, ABodyThatIsCutAnywhereIsRefused) {
  Strictness strict;
  ASSERT_TRUE(strict.takes(kBody));
  for (size_t size = 0; size < kBody.size(); ++size)
    EXPECT_FALSE(strict.takes(kBody.substr(0, size))) << kBody.substr(0, size);
  for (size_t from = 1; from < kBody.size(); ++from)
    EXPECT_FALSE(strict.takes(kBody.substr(from))) << kBody.substr(from);
}

TEST(JsonGrammar, ABodyWithOneByteChangedPutInOrTakenOutIsTakenOnlyIfItIsJson) {
  Strictness strict;
  for (size_t at = 0; at < kBody.size(); ++at) {
    std::string without(kBody);
    strict.expect_taken_only_if_json(without.erase(at, 1));
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed(kBody), longer(kBody);
      changed[at] = char(byte);
      strict.expect_taken_only_if_json(changed);
      strict.expect_taken_only_if_json(longer.insert(at, 1, char(byte)));
    }
  }
  EXPECT_GT(strict.taken(), 5'000u);
  EXPECT_GT(strict.refused(), 50'000u);
}

TEST(JsonGrammar, OnlyWhiteSpaceMayStandAroundABody) {
  Strictness strict;
  const std::string body(kBody);
  for (int byte = 0; byte < 256; ++byte) {
    const bool space = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
    EXPECT_EQ(strict.takes(body + char(byte)), space) << byte;
    EXPECT_EQ(strict.takes(char(byte) + body), space) << byte;
    EXPECT_EQ(strict.takes(body + "\n \r\t" + char(byte)), space) << byte;
  }
  for (const std::string behind : {"{}", "[]", "null", ",", "}", "//", "/* */", "#", "\"", "\xef\xbb\xbf"})
    EXPECT_FALSE(strict.takes(body + behind)) << behind;
  EXPECT_FALSE(strict.takes(body + body));
}

TEST(JsonGrammar, OtherEncodingsThanUtf8AreRefused) {
  Strictness strict;
  for (const bool big : {false, true}) {
    std::string wide;
    for (const char c : lock_with_unknown("1")) wide += big ? std::string{'\0', c} : std::string{c, '\0'};
    EXPECT_FALSE(strict.takes(wide));
    EXPECT_FALSE(strict.takes((big ? "\xfe\xff" : "\xff\xfe") + wide));
  }
  EXPECT_FALSE(strict.takes("\xef\xbb\xbf" + lock_with_unknown("1"))) << "a byte order mark is no JSON";
  EXPECT_TRUE(strict.takes(lock_with_unknown("\"\xef\xbb\xbf\""))) << "in a string it is a character";
}

TEST(JsonGrammar, ABodyThatIsNoObjectIsRefusedBySingleCallsAndBatches) {
  RequestParser parser;
  for (const std::string_view text : {"null", "true", "0", "-1.5", "\"{}\"", "[]", "[{}]", "", " "}) {
    EXPECT_FALSE(parser.parse_lock(Body(text).view())) << text;
    EXPECT_FALSE(parser.parse_batch(Body(text).view())) << text;
  }
}

TEST(JsonGrammar, NestingIsTakenToADepthOfAThousandAndDeeperDoesNotCrash) {
  Strictness strict;
  const auto nested = [](size_t depth, std::string_view open, std::string_view close) {
    std::string text;
    for (size_t i = 0; i < depth; ++i) text += open;
    text += '1';
    for (size_t i = 0; i < depth; ++i) text += close;
    return text;
  };
  for (const auto& [open, close] :
       {std::pair("[", "]"), std::pair("{\"\":", "}"), std::pair("[ {\"a\" :", "} ]")}) {
    const size_t levels = std::string_view(open).size() > 5 ? 2 : 1;
    EXPECT_TRUE(strict.takes(lock_with_unknown(nested(1'000 / levels, open, close)))) << open;
    for (const size_t depth : {1'024, 1'025, 1'100, 4'096, 100'000}) {
      const std::string text = nested(depth, open, close);
      EXPECT_FALSE(strict.takes(lock_with_unknown(text))) << depth << open;
      EXPECT_FALSE(strict.takes(lock_with_unknown(text.substr(0, text.size() / 2)))) << depth << open;
      EXPECT_FALSE(strict.takes(text)) << depth << open;
    }
  }
  EXPECT_TRUE(strict.takes(lock_with_unknown("1"))) << "the parser is as good as before";
}

// The first fault that a lock body with `more` at its end is refused with; empty: none.
std::string fault_of(std::string_view more) {
  RequestParser parser;
  const Body body(R"({"type":"t","resource_id":"r","node_id":"n",)" + std::string(more) + "}");
  const auto request = parser.parse_lock(body.view());
  return request ? std::string() : request.error().message;
}

TEST(JsonGrammar, AKnownFieldMayOccurOnceHoweverItsNameIsWritten) {
  for (const std::string_view name : {"type", "resource_id", "node_id"}) {
    const std::string spelled = fmt::format("\\u{:04x}{}", int(name[0]), name.substr(1));
    for (const std::string_view value : {"\"t\"", "\"\"", "null", "1"}) {
      EXPECT_THAT(fault_of(fmt::format("\"{}\":{}", name, value)), HasSubstr("occurs twice")) << name;
      EXPECT_THAT(fault_of(fmt::format("\"{}\":{}", spelled, value)), HasSubstr("occurs twice")) << spelled;
    }
  }
  for (const auto& [name, value] : {std::pair("wait_ms", "1"),
                                    {"lease_ms", "1000"},
                                    {"monitor", "true"},
                                    {"dereference", "false"},
                                    {"info", "\"i\""},
                                    {"scope", "\"resource\""},
                                    {"request_id", "\"q\""}}) {
    EXPECT_EQ(fault_of(fmt::format("\"{}\":{}", name, value)), "");
    EXPECT_THAT(fault_of(fmt::format("\"{0}\":{1},\"{0}\":{1}", name, value)), HasSubstr("occurs twice"))
        << name;
    EXPECT_THAT(fault_of(fmt::format("\"{0}\":null,\"{0}\":{1}", name, value)), HasSubstr("occurs twice"))
        << name;
  }
  EXPECT_EQ(fault_of(R"("x":1,"x":2,"Type":3,"type ":4,"":5,"":6)"), "")
      << "unknown ones are nobody's business";
}

// Whether a renewal with this text as its token is taken, and with which one.
std::optional<uint64_t> renewal_token(std::string_view number) {
  RequestParser parser;
  const Body body(R"({"type":"t","resource_id":"r","node_id":"n","token":)" + std::string(number) + "}");
  const auto command = parser.parse_renew(body.view());
  if (!command) return std::nullopt;
  return uint64_t(command->token);
}

TEST(JsonGrammar, IntegersAreTakenUpToTwoToThe53AndOnlyAsIntegers) {
  for (int bit = 0; bit < 53; ++bit) {
    const uint64_t power = uint64_t(1) << bit;
    EXPECT_EQ(renewal_token(std::to_string(power)), power);
    if (bit > 0) {
      EXPECT_EQ(renewal_token(std::to_string(power - 1)), power - 1);
    }
  }
  EXPECT_EQ(renewal_token("9007199254740991"), 9007199254740991u);
  for (int bit = 53; bit < 64; ++bit) {
    EXPECT_EQ(renewal_token(std::to_string(uint64_t(1) << bit)), std::nullopt) << bit;
    EXPECT_EQ(renewal_token(std::to_string((uint64_t(1) << bit) + 1)), std::nullopt) << bit;
  }
  for (const std::string_view number : {"0",
                                        "-0",
                                        "-1",
                                        "1.0",
                                        "1e3",
                                        "1E0",
                                        "10e-1",
                                        "0.5",
                                        "01",
                                        "+1",
                                        "1.",
                                        ".1",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "-9223372036854775808",
                                        "9007199254740991.0",
                                        "\"1\"",
                                        "true",
                                        "[1]",
                                        "{}",
                                        "0x1"})
    EXPECT_EQ(renewal_token(number), std::nullopt) << number;
}

TEST(JsonGrammar, EveryIntegerFieldWantsAnIntegerThatIsNotNegative) {
  for (const std::string_view field : {"wait_ms", "lease_ms"}) {
    EXPECT_EQ(fault_of(fmt::format("\"{}\":100", field)), "");
    for (const std::string_view number :
         {"-1", "-9223372036854775808", "100.0", "1e2", "\"100\"", "false", "[]", "{}"})
      EXPECT_THAT(fault_of(fmt::format("\"{}\":{}", field, number)), HasSubstr(std::string(field))) << number;
    for (const std::string_view number : {"0100", "+100", "100.", "18446744073709551616", "1_000", "0x64"})
      EXPECT_THAT(fault_of(fmt::format("\"{}\":{}", field, number)), HasSubstr("the body ")) << number;
  }
}

}  // namespace
}  // namespace turnstile
