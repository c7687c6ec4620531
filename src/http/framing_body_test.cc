// Lengths, chunks, chunk extensions and trailers: where a body ends is said in one way only, or it is
// refused.
#include "http/framing_test_support.h"

namespace turnstile::http {
namespace {

class BodyFramingTest : public FramingTest {};

const std::vector<std::string> kTooLarge{"413"}, kHello{"POST /c? hello"}, kAbc{"POST /c? abc"};

// "hello" behind a head with these fields.
std::string with(std::string_view lines) {
  return "POST /c HTTP/1.1\r\nHost: a\r\n" + std::string(lines) + "\r\n\r\nhello";
}
std::string chunked(std::string_view chunks) {
  return "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(chunks);
}
// "abc" as one chunk, with this behind its size.
std::string extended(std::string_view extension) {
  return chunked("3" + std::string(extension) + "\r\nabc\r\n0\r\n\r\n");
}
std::string trailed(std::string_view trailer) {
  return chunked("3\r\nabc\r\n0\r\n" + std::string(trailer) + "\r\n\r\n");
}

Cases lengths() {
  return {
      {"One", with("Content-Length: 5"), kHello},
      {"WithoutABlank", with("content-length:5"), kHello},
      {"WithZeroesInFront", with("Content-Length: 0005"), kHello},
      {"TwoThatAreEqual", with("Content-Length: 5\r\nContent-Length: 5"), kHello},
      {"OfTwoRequests",
       with("Content-Length: 5") + with("Content-Length: 5"),
       {"POST /c? hello", "POST /c? hello"}},
      {"TwoThatDiffer", with("Content-Length: 5\r\nContent-Length: 6"), kRefused},
      {"AListThatDiffers", with("Content-Length: 5, 6"), kRefused},
      {"Negative", with("Content-Length: -5"), kRefused},
      {"Signed", with("Content-Length: +5"), kRefused},
      {"WithGarbageBehindIt", with("Content-Length: 5x"), kRefused},
      {"WithABlankWithin", with("Content-Length: 5 5"), kRefused},
      {"Fractional", with("Content-Length: 5.0"), kRefused},
      {"Empty", with("Content-Length: "), kRefused},
      {"Hexadecimal", with("Content-Length: 0x5"), kRefused},
      {"Quoted", with("Content-Length: \"5\""), kRefused},
      {"Overflowing", with("Content-Length: 18446744073709551621"), kRefused},
      {"Huge", with("Content-Length: 18446744073709551615"), kTooLarge},
      {"WithABlankBeforeTheColon", with("Content-Length : 5"), kRefused},
      {"BeforeChunked", with("Content-Length: 5\r\nTransfer-Encoding: chunked"), kRefused},
      {"BehindChunked", with("Transfer-Encoding: chunked\r\nContent-Length: 5"), kRefused},
  };
}
INSTANTIATE_TEST_SUITE_P(Length, BodyFramingTest, testing::ValuesIn(lengths()), framing_case_name);

Cases encodings() {
  return {
      {"ChunkedInCapitals",
       "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n3\r\nabc\r\n0\r\n\r\n", kAbc},
      {"Unknown", with("Transfer-Encoding: gzip"), kRefused},
      {"Identity", with("Transfer-Encoding: identity"), kRefused},
      {"Empty", with("Transfer-Encoding:"), kRefused},
      {"ChunkedBehindAnother", with("Transfer-Encoding: gzip, chunked"), kRefused},
      {"ChunkedBeforeAnother", with("Transfer-Encoding: chunked, gzip"), kRefused},
      {"ChunkedTwiceInAList", with("Transfer-Encoding: chunked, chunked"), kRefused},
      {"ChunkedTwice", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), kRefused},
      {"ChunkedAndThenAnother", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip"), kRefused},
      {"ChunkedWithAParameter", with("Transfer-Encoding: chunked;q=1"), kRefused},
      {"ChunkedInQuotes", with("Transfer-Encoding: \"chunked\""), kRefused},
      {"ChunkedInDisguise",
       with("Transfer-Encoding: \x0b"
            "chunked"),
       kRefused},
      {"ChunkedWithALetterMore", with("Transfer-Encoding: xchunked"), kRefused},
      {"ABlankBeforeTheColon", with("Transfer-Encoding : chunked"), kRefused},
      {"ChunkedInHttp10", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", kRefused},
  };
}
INSTANTIATE_TEST_SUITE_P(Encoding, BodyFramingTest, testing::ValuesIn(encodings()), framing_case_name);

Cases chunks() {
  return {
      {"Two", chunked("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"), {"POST /c? abc0123456789"}},
      {"SmallHexadecimalDigits", chunked("a\r\n0123456789\r\n0\r\n\r\n"), {"POST /c? 0123456789"}},
      {"ZeroesInFront", chunked("0003\r\nabc\r\n000\r\n\r\n"), kAbc},
      {"None", chunked("0\r\n\r\n"), {"POST /c? "}},
      {"LineEndsWithin", chunked("4\r\n\r\n\r\n\r\n0\r\n\r\n"), {"POST /c? \r\n\r\n"}},
      {"AndAnotherRequest",
       chunked("3\r\nabc\r\n0\r\n\r\n") + with("Content-Length: 5"),
       {"POST /c? abc", "POST /c? hello"}},
      {"WithoutASize", chunked("\r\nabc\r\n"), kRefused},
      {"OfGarbage", chunked("g\r\n"), kRefused},
      {"Negative", chunked("-1\r\n"), kRefused},
      {"Signed", chunked("+3\r\nabc\r\n"), kRefused},
      {"With0x", chunked("0x3\r\nabc\r\n"), kRefused},
      {"ABlankBeforeTheSize", chunked(" 3\r\nabc\r\n"), kRefused},
      {"ABlankBehindTheSize", chunked("3 \r\nabc\r\n"), kRefused},
      {"ATabBehindTheSize", chunked("3\t\r\nabc\r\n"), kRefused},
      {"ABareLineFeedBehindTheSize", chunked("3\nabc\r\n"), kRefused},
      {"ABareCarriageReturnBehindTheSize", chunked("3\rabc\r\n"), kRefused},
      {"LongerThanItsSize", chunked("3\r\nabcd\r\n"), kRefused},
      {"ShorterThanItsSize", chunked("4\r\nabc\r\n0\r\n\r\n"), kRefused},
      {"EndingWithALineFeed", chunked("3\r\nabc\n0\r\n\r\n"), kRefused},
      {"EndingWithoutALineEnd", chunked("3\r\nabc0\r\n\r\n"), kRefused},
      {"ASizeThatOverflows", chunked("FFFFFFFFFFFFFFFFF\r\n"), kTooLarge},
      {"ASizeThatIsNegativeIfSigned", chunked("FFFFFFFFFFFFFFFF\r\n"), kTooLarge},
  };
}
INSTANTIATE_TEST_SUITE_P(Chunk, BodyFramingTest, testing::ValuesIn(chunks()), framing_case_name);

Cases extensions() {
  return {
      {"AName", extended(";a"), kAbc},
      {"ANameAndAToken", extended(";a=b"), kAbc},
      {"ANameAndAQuotedString", extended(";a=\"b c\""), kAbc},
      {"AnEmptyQuotedString", extended(";a=\"\""), kAbc},
      {"AQuoteInAQuotedString", extended(";a=\"\\\"\""), kAbc},
      {"ASemicolonInAQuotedString", extended(";a=\";=\""), kAbc},
      {"EightBitBytesInAQuotedString", extended(";a=\"\xc3\xa4\""), kAbc},
      {"Several", extended(";a;b=c;d=\"e\""), kAbc},
      {"ABlankBeforeTheSemicolon", extended(" ;a"), kAbc},
      {"ABlankBehindTheSemicolon", extended("; a"), kAbc},
      {"BlanksAroundTheEqualsSign", extended(";a = b"), kAbc},
      {"BlanksAndTabsEverywhere", extended(" \t; \ta \t= \t\"b\" \t; \tc"), kAbc},
      {"OnTheLastChunk", chunked("3\r\nabc\r\n0 ; a=b\r\n\r\n"), kAbc},
      {"Empty", extended(";"), kRefused},
      {"EmptyWithABlank", extended("; "), kRefused},
      {"EmptyBeforeAnother", extended(";;a"), kRefused},
      {"EmptyBehindAnother", extended(";a;"), kRefused},
      {"NoName", extended(";=b"), kRefused},
      {"NoValue", extended(";a="), kRefused},
      {"NoValueBeforeAnother", extended(";a=;b"), kRefused},
      {"ANameThatIsNoToken", extended(";a(b"), kRefused},
      {"ANameInQuotes", extended(";\"a\""), kRefused},
      {"ANameWithAnEightBitByte", extended(";\xc3\xa4"), kRefused},
      {"AValueThatIsNoToken", extended(";a=b/c"), kRefused},
      {"TwoEqualsSigns", extended(";a==b"), kRefused},
      {"TwoValues", extended(";a=b c"), kRefused},
      {"AQuotedStringWithoutEnd", extended(";a=\"b"), kRefused},
      {"AQuotedStringThatEndsWithABackslash", extended(";a=\"b\\"), kRefused},
      {"AQuotedStringWhoseEndIsEscaped", extended(";a=\"b\\\""), kRefused},
      {"SomethingBehindAQuotedString", extended(";a=\"b\"c"), kRefused},
      {"ABlankAtTheEnd", extended(";a "), kRefused},
      {"ALineFeedInAQuotedString", extended(";a=\"\n\""), kRefused},
      {"ALineEndInAQuotedString", extended(";a=\"\r\n\""), kRefused},
      {"AControlCharacter", extended(";a=\"\x01\""), kRefused},
      {"AComma", extended(",a"), kRefused},
      {"WithoutEnd", chunked("3;" + std::string(600, 'x')), kRefused},
      {"EmptyOnTheLastChunk", chunked("3\r\nabc\r\n0;\r\n\r\n"), kRefused},
  };
}
INSTANTIATE_TEST_SUITE_P(Extension, BodyFramingTest, testing::ValuesIn(extensions()), framing_case_name);

Cases trailers() {
  std::string many;
  for (int i = 0; i < 100; ++i) many += "X: " + std::string(90, 'y') + "\r\n";
  return {
      {"One", trailed("X: y"), kAbc},
      {"Several", trailed("X: y\r\nZ:\r\nA: b c"), kAbc},
      {"EightBitBytesInTheValue", trailed("X: \xc3\xa4"), kAbc},
      {"AFieldThatFramesChangesNothing",
       trailed("Content-Length: 7") + with("Content-Length: 5"),
       {"POST /c? abc", "POST /c? hello"}},
      {"NoColon", trailed("X"), kRefused},
      {"NoName", trailed(": y"), kRefused},
      {"ABlankBeforeTheColon", trailed("X : y"), kRefused},
      {"ATabBeforeTheColon", trailed("X\t: y"), kRefused},
      {"ABlankInTheName", trailed("X Y: z"), kRefused},
      {"ANameThatIsNoToken", trailed("X(: y"), kRefused},
      {"FoldedWithABlank", trailed("X: y\r\n z"), kRefused},
      {"FoldedWithATab", trailed("X: y\r\n\tz"), kRefused},
      {"TheFirstOneFolded", trailed(" X: y"), kRefused},
      {"ARequestInstead", trailed("GET / HTTP/1.1\r\nHost: a"), kRefused},
      {"ABareLineFeed", chunked("0\r\nX: y\n\r\n"), kRefused},
      {"ABareLineFeedAtTheEnd", chunked("0\r\n\n"), kRefused},
      {"ABareCarriageReturn", trailed("X: y\rz"), kRefused},
      {"AControlCharacter", trailed("X: \x1b"), kRefused},
      {"WithoutEnd", chunked("0\r\n" + many), kRefused},
  };
}
INSTANTIATE_TEST_SUITE_P(Trailer, BodyFramingTest, testing::ValuesIn(trailers()), framing_case_name);

TEST_P(BodyFramingTest, IsReadAsItMustBe) { expect_the_same_in_all_pieces(); }

}  // namespace
}  // namespace turnstile::http
