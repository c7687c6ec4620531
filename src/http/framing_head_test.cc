// Request lines, targets, Host and other fields: what RFC 9112 and RFC 3986 allow is read, all else refused.
#include "http/framing_test_support.h"

namespace turnstile::http {
namespace {

std::string with_line(std::string_view line) { return std::string(line) + "\r\nHost: a\r\n\r\n"; }
std::string with_target(std::string_view target) {
  return with_line("GET " + std::string(target) + " HTTP/1.1");
}
std::string with_fields(std::string_view lines) {
  return "GET /p HTTP/1.1\r\n" + std::string(lines) + "\r\n\r\n";
}
std::string with_host(std::string_view host) { return with_fields("Host: " + std::string(host)); }

Cases request_lines() {
  return {
      {"Get", with_line("GET /p HTTP/1.1"), {"GET /p? "}},
      {"Post", with_line("POST /p HTTP/1.1"), {"POST /p? "}},
      {"Head", with_line("HEAD /p HTTP/1.1"), {"HEAD /p? "}},
      {"AnotherMethod", with_line("DELETE /p HTTP/1.1"), {"DELETE /p? "}},
      {"AMethodOfEveryTokenCharacter",
       with_line("A!#$%&'*+-.^_`|~9z /p HTTP/1.1"),
       {"A!#$%&'*+-.^_`|~9z /p? "}},
      {"AMethodInSmallLettersIsAnother", with_line("get /p HTTP/1.1"), {"get /p? "}},
      {"Http10WithoutHost", "GET / HTTP/1.0\r\n\r\n", {"GET /? "}},
      {"AnEmptyLineFirst", "\r\n" + with_line("GET / HTTP/1.1"), {"GET /? "}},
      {"TwoEmptyLinesFirst", "\r\n\r\n" + with_line("GET / HTTP/1.1"), kRefused},
      {"ABareLineFeedFirst", "\n" + with_line("GET / HTTP/1.1"), kRefused},
      {"ABlankFirst", " " + with_line("GET / HTTP/1.1"), kRefused},
      {"AMethodWithAComma", with_line("GE,T / HTTP/1.1"), kRefused},
      {"AMethodWithAParenthesis", with_line("GET( / HTTP/1.1"), kRefused},
      {"AMethodWithAnEightBitByte", with_line("GE\xc3\x84 / HTTP/1.1"), kRefused},
      {"NoTarget", with_line("GET HTTP/1.1"), kRefused},
      {"TwoBlanksBeforeTheTarget", with_line("GET  / HTTP/1.1"), kRefused},
      {"TwoBlanksBeforeTheVersion", with_line("GET /  HTTP/1.1"), kRefused},
      {"ATabBeforeTheTarget", with_line("GET\t/ HTTP/1.1"), kRefused},
      {"ATabBeforeTheVersion", with_line("GET /\tHTTP/1.1"), kRefused},
      {"ABlankBehindTheVersion", with_line("GET / HTTP/1.1 "), kRefused},
      {"SomethingBehindTheVersion", with_line("GET / HTTP/1.1 x"), kRefused},
      {"NoVersion", with_line("GET /"), kRefused},
      {"Http09", "GET /\r\n\r\n", kRefused},
      {"Http12", with_line("GET / HTTP/1.2"), kRefused},
      {"Http20", with_line("GET / HTTP/2.0"), kRefused},
      {"Http2", with_line("GET / HTTP/2"), kRefused},
      {"Http10WithTwoDigits", with_line("GET / HTTP/1.10"), kRefused},
      {"VersionInSmallLetters", with_line("GET / http/1.1"), kRefused},
      {"AnotherProtocol", with_line("GET / ICY/1.1"), kRefused},
      {"Tls", "\x16\x03\x01\x02", kRefused},
      {"TheGreetingOfHttp2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", kRefused},
      {"BareLineFeedBehindTheRequestLine", "GET / HTTP/1.1\nHost: a\r\n\r\n", kRefused},
      {"BareLineFeedsOnly", "GET / HTTP/1.1\nHost: a\n\n", kRefused},
      {"GoodThenBad", with_line("GET /p HTTP/1.1") + "GET / HTTP/1.1\n", {"GET /p? ", "400"}},
  };
}
INSTANTIATE_TEST_SUITE_P(RequestLine, FramingTest, testing::ValuesIn(request_lines()), framing_case_name);

Cases targets() {
  Cases cases{
      {"PathAndQuery", with_target("/p?q=1"), {"GET /p?q=1 "}},
      {"EveryCharacterOfAPath", with_target("/aZ09-._~!$&'()*+,;=:@/"), {"GET /aZ09-._~!$&'()*+,;=:@/? "}},
      {"EveryCharacterOfAQuery",
       with_target("/?aZ09-._~!$&'()*+,;=:@/?"),
       {"GET /?aZ09-._~!$&'()*+,;=:@/? "}},
      {"AnEscape", with_target("/%2f?%C3%a4"), {"GET /%2f?%C3%a4 "}},
      {"AnEmptyQuery", with_target("/p?"), {"GET /p? "}},
      {"TwoSlashes", with_target("//p"), {"GET //p? "}},
      {"AbsoluteForm", with_target("http://h:1/p?x"), {"GET /p?x "}},
      {"AbsoluteFormWithoutAPath", with_target("http://h"), {"GET /? "}},
      {"AbsoluteFormWithAQueryOnly", with_target("http://h?x"), {"GET /?x "}},
      {"AbsoluteFormInCapitals", with_target("HTTP://H/p"), {"GET /p? "}},
      {"AbsoluteFormOfHttps", with_target("https://h/p"), {"GET /p? "}},
      {"AbsoluteFormWithIpv6", with_target("http://[::1]:80/p"), {"GET /p? "}},
      {"AsteriskOfOptions", with_line("OPTIONS * HTTP/1.1"), {"OPTIONS *? "}},
      {"AsteriskInAbsoluteForm", with_line("OPTIONS http://h HTTP/1.1"), {"OPTIONS *? "}},
      {"OptionsOfAPath", with_line("OPTIONS /p HTTP/1.1"), {"OPTIONS /p? "}},
      {"OptionsOfTheRootInAbsoluteForm", with_line("OPTIONS http://h/ HTTP/1.1"), {"OPTIONS /? "}},
      {"AsteriskOfGet", with_target("*"), kRefused},
      {"AsteriskOfPost", with_line("POST * HTTP/1.1"), kRefused},
      {"AsteriskWithAQuery", with_line("OPTIONS *?x HTTP/1.1"), kRefused},
      {"Connect", with_line("CONNECT h:443 HTTP/1.1"), kRefused},
      {"AuthorityFormOfGet", with_target("h:443"), kRefused},
      {"NoSlash", with_target("p"), kRefused},
      {"AQueryOnly", with_target("?x"), kRefused},
      {"AnotherScheme", with_target("ftp://a/"), kRefused},
      {"OneSlashBehindTheScheme", with_target("http:/a"), kRefused},
      {"NoSlashBehindTheScheme", with_target("http:a"), kRefused},
      {"NoHostBehindTheScheme", with_target("http:///p"), kRefused},
      {"APortWithoutAHost", with_target("http://:80/p"), kRefused},
      {"AUserBeforeTheHost", with_target("http://u@h/p"), kRefused},
      {"AUserWithAPassword", with_target("http://u:p@h/p"), kRefused},
      {"AHostThatIsNone", with_target("http://a\\b/p"), kRefused},
      {"AFragment", with_target("/p#f"), kRefused},
      {"AFragmentBehindAQuery", with_target("/p?q#f"), kRefused},
      {"AFragmentBehindAHost", with_target("http://h#f"), kRefused},
      {"EightBitBytes", with_target("/\xc3\xa4"), kRefused},
      {"EightBitBytesInAQuery", with_target("/?\xff"), kRefused},
      {"AnEscapeWithoutDigits", with_target("/%"), kRefused},
      {"AnEscapeWithOneDigit", with_target("/?a=%f"), kRefused},
      {"AnEscapeThatIsNone", with_target("/?a=%zz"), kRefused},
      {"Delete", with_target("/\x7f"), kRefused},
      {"Nul", with_target(std::string_view("/\0", 2)), kRefused},
      {"Escape", with_target("/\x1b"), kRefused},
      {"ABlank", with_target("/a b"), kRefused},
  };
  for (const char c : std::string_view("<>\"{}|\\^`[]")) {
    char name[] = "Character00InAPath";
    name[9] = "0123456789ABCDEF"[c >> 4];
    name[10] = "0123456789ABCDEF"[c & 15];
    cases.push_back({name, with_target(std::string("/a") + c), kRefused});
    cases.push_back({std::string(name, 11) + "InAQuery", with_target(std::string("/?a") + c), kRefused});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Target, FramingTest, testing::ValuesIn(targets()), framing_case_name);

Cases hosts() {
  const std::vector<std::string> read{"GET /p? "};
  return {
      {"AName", with_host("turnstile.example"), read},
      {"ANameWithAPort", with_host("turnstile.example:8086"), read},
      {"ANameWithAnEmptyPort", with_host("a:"), read},
      {"ANameInCapitals", with_host("A.B"), read},
      {"ANameWithAnEscape", with_host("%61"), read},
      {"ANameOfSubDelimiters", with_host("a_b~!$&'()*+,;=c"), read},
      {"AnIpv4Address", with_host("127.0.0.1:80"), read},
      {"AnIpv6Address", with_host("[::1]"), read},
      {"AnIpv6AddressWithAPort", with_host("[2001:db8::1]:80"), read},
      {"AnIpv6AddressWithIpv4InIt", with_host("[::ffff:1.2.3.4]"), read},
      {"AnAddressOfTheFuture", with_host("[v1.a:b]"), read},
      {"Empty", with_host(""), read},
      {"BlanksAround", with_fields("Host:  \t a \t "), read},
      {"NoBlank", with_fields("Host:a"), read},
      {"NameInSmallLetters", with_fields("host: a"), read},
      {"BesidesAnotherInTheTarget", "GET http://b/p HTTP/1.1\r\nHost: a\r\n\r\n", read},
      {"ABlankWithin", with_host("a b"), kRefused},
      {"AList", with_host("a, b"), kRefused},
      {"APath", with_host("a/b"), kRefused},
      {"AUser", with_host("u@a"), kRefused},
      {"AQuery", with_host("a?b"), kRefused},
      {"AFragment", with_host("a#b"), kRefused},
      {"AScheme", with_host("http://a"), kRefused},
      {"ABackslash", with_host("a\\b"), kRefused},
      {"Quotes", with_host("\"a\""), kRefused},
      {"AngleBrackets", with_host("<a>"), kRefused},
      {"EightBitBytes", with_host("\xc3\xa4"), kRefused},
      {"ATabWithin", with_host("a\tb"), kRefused},
      {"AnEscapeThatIsNone", with_host("a%2"), kRefused},
      {"APortThatIsNone", with_host("a:b"), kRefused},
      {"ANegativePort", with_host("a:-1"), kRefused},
      {"APortThatIsTooLarge", with_host("a:65536"), kRefused},
      {"APortOfManyDigits", with_host("a:99999999999999999999"), kRefused},
      {"TwoPorts", with_host("a:1:2"), kRefused},
      {"APortOnly", with_host(":80"), kRefused},
      {"AnIpv6AddressWithoutBrackets", with_host("::1"), kRefused},
      {"AnIpv6AddressThatIsNone", with_host("[::g]"), kRefused},
      {"AnIpv6AddressWithAZone", with_host("[fe80::1%25eth0]"), kRefused},
      {"AnIpv6AddressWithoutEnd", with_host("[::1"), kRefused},
      {"SomethingBehindAnIpv6Address", with_host("[::1]a"), kRefused},
      {"EmptyBrackets", with_host("[]"), kRefused},
      {"AnIpv4AddressInBrackets", with_host("[127.0.0.1]"), kRefused},
      {"AnAddressOfTheFutureWithoutVersion", with_host("[v.a]"), kRefused},
      {"AnAddressOfTheFutureWithoutText", with_host("[v1.]"), kRefused},
      {"NoneInHttp11", with_fields("X: a"), kRefused},
      {"Two", with_fields("Host: a\r\nHost: a"), kRefused},
      {"TwoOfDifferentSpelling", with_fields("Host: a\r\nhOST: b"), kRefused},
      {"OneThatIsNoneBesidesOneInTheTarget", "GET http://b/p HTTP/1.1\r\nHost: a b\r\n\r\n", kRefused},
      {"NoneBesidesOneInTheTarget", "GET http://b/p HTTP/1.1\r\n\r\n", kRefused},
      {"OneThatIsNoneInHttp10", "GET /p HTTP/1.0\r\nHost: a b\r\n\r\n", kRefused},
  };
}
INSTANTIATE_TEST_SUITE_P(Host, FramingTest, testing::ValuesIn(hosts()), framing_case_name);

Cases fields() {
  const auto with = [](std::string_view line) { return with_fields("Host: a\r\n" + std::string(line)); };
  const std::vector<std::string> read{"GET /p? "};
  return {
      {"AnUnknownOne", with("X-Y: z"), read},
      {"AnEmptyValue", with("X:"), read},
      {"AnEmptyValueAndABlank", with("X: "), read},
      {"ATabBeforeTheValue", with("X:\ty"), read},
      {"ATabInTheValue", with("X: y\tz"), read},
      {"EightBitBytesInTheValue", with("X: \xc3\xa4\xff"), read},
      {"EveryTokenCharacterInTheName", with("!#$%&'*+-.^_`|~9z: y"), read},
      {"Two", with("X: y\r\nX: z"), read},
      {"OneOfEachThatDecides", with("Origin: http://a\r\nAuthorization: b\r\nSec-Fetch-Site: none"), read},
      {"TwoOrigins", with("Origin: http://a\r\norigin: http://a"), kRefused},
      {"AnEmptyOriginAndAnother", with("Origin:\r\nOrigin: http://a"), kRefused},
      {"TwoAuthorizations", with("Authorization: a\r\nAuthorization: b"), kRefused},
      {"TwoSitesThatAsk", with("Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site"), kRefused},
      {"ABlankBeforeTheColon", with("X : y"), kRefused},
      {"ATabBeforeTheColon", with("X\t: y"), kRefused},
      {"ABlankInTheName", with("X Y: z"), kRefused},
      {"NoColon", with("X"), kRefused},
      {"NoName", with(": y"), kRefused},
      {"AnEightBitByteInTheName", with("\xc3\xa4: y"), kRefused},
      {"AParenthesisInTheName", with("X(: y"), kRefused},
      {"AControlCharacterInTheValue", with("X: y\x01"), kRefused},
      {"EscInTheValue", with("X: \x1b[2J"), kRefused},
      {"DeleteInTheValue", with("X: \x7f"), kRefused},
      {"NulInTheValue", with(std::string_view("X: y\0", 5)), kRefused},
      {"NulInTheName", with(std::string_view("X\0: y", 5)), kRefused},
      {"ABareCarriageReturn", with("X: y\rz"), kRefused},
      {"ABareCarriageReturnAtTheEnd", with("X: y\r"), kRefused},
      {"ABareLineFeed", with("X: y\nZ: z"), kRefused},
      {"ABareLineFeedAtTheEnd", "GET / HTTP/1.1\r\nHost: a\r\n\n", kRefused},
      {"FoldedWithABlank", with("X: y\r\n z"), kRefused},
      {"FoldedWithATab", with("X: y\r\n\tz"), kRefused},
      {"FoldedAndEmpty", with("X: y\r\n "), kRefused},
      {"TheFirstOneFolded", with_fields(" Host: a"), kRefused},
  };
}
INSTANTIATE_TEST_SUITE_P(Field, FramingTest, testing::ValuesIn(fields()), framing_case_name);

TEST_P(FramingTest, IsReadAsItMustBe) { expect_the_same_in_all_pieces(); }

}  // namespace
}  // namespace turnstile::http
