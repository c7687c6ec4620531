// What JSON is, once more and as plainly as can be (RFC 8259, RFC 3629), for tests that put many thousands of
// texts to our parser: it must take those that this file takes, and no others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/test_body.h"

namespace turnstile {

// The number of bytes of the UTF-8 character that `text` begins with; 0 if it begins with none.
inline size_t utf8_character(std::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? uint8_t(text[i]) : 0; };
  const auto follows = [byte](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  if (text.empty()) return 0;
  const uint32_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return follows(1) ? 2 : 0;  // c0, c1: what needs one byte only
  if (lead >= 0xe0 && lead < 0xf0) {
    const uint32_t code = (lead & 15) << 12 | (byte(1) & 63U) << 6 | (byte(2) & 63U);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return follows(1) && follows(2) && code >= 0x800 && !surrogate ? 3 : 0;
  }
  if (lead >= 0xf0 && lead < 0xf8) {
    const uint32_t code = (lead & 7) << 18 | (byte(1) & 63U) << 12 | (byte(2) & 63U) << 6 | (byte(3) & 63U);
    return follows(1) && follows(2) && follows(3) && code >= 0x10000 && code <= 0x10ffff ? 4 : 0;
  }
  return 0;
}

// Eats a JSON text from the left. Each function takes one thing of the grammar, or says that it is not there.
class JsonGrammar {
 public:
  // One value and nothing else, but white space around it.
  static bool is_json(std::string_view text) {
    JsonGrammar grammar(text);
    return grammar.element() && grammar.rest_.empty();
  }

 private:
  explicit JsonGrammar(std::string_view text) : rest_(text) {}

  bool element() {
    space();
    if (!value()) return false;
    space();
    return true;
  }
  bool value() {
    if (take('{')) return members();
    if (take('[')) return elements();
    if (take('"')) return characters();
    return take("true") || take("false") || take("null") || number();
  }
  bool members() {
    space();
    if (take('}')) return true;
    do {
      space();
      if (!take('"') || !characters()) return false;
      space();
      if (!take(':') || !element()) return false;
    } while (take(','));
    return take('}');
  }
  bool elements() {
    space();
    if (take(']')) return true;
    do {
      if (!element()) return false;
    } while (take(','));
    return take(']');
  }

  bool characters() {  // behind the opening quote
    while (!rest_.empty()) {
      if (take('"')) return true;
      if (take('\\')) {
        if (!escape()) return false;
        continue;
      }
      const size_t size = utf8_character(rest_);
      if (size == 0 || uint8_t(rest_[0]) < 0x20) return false;
      rest_.remove_prefix(size);
    }
    return false;
  }
  bool escape() {
    if (!take('u')) return take_one_of("\"\\/bfnrt");
    uint32_t code = 0;
    if (!four_digits(code)) return false;
    if (code < 0xd800 || code >= 0xe000) return true;
    // Half a character is none: no UTF-8 could say it.
    return code < 0xdc00 && take("\\u") && four_digits(code) && code >= 0xdc00 && code < 0xe000;
  }
  bool four_digits(uint32_t& code) {
    code = 0;
    for (int i = 0; i < 4; ++i) {
      const size_t digit = rest_.empty() ? std::string_view::npos : kHex.find(rest_[0]);
      if (digit == std::string_view::npos) return false;
      code = code * 16 + uint32_t(digit < 16 ? digit : digit - 6);
      rest_.remove_prefix(1);
    }
    return true;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take_one_of("eE")) {
      take_one_of("+-");
      return digits();
    }
    return true;
  }
  bool digits() {
    const size_t before = rest_.size();
    while (take_one_of("0123456789")) {
    }
    return rest_.size() < before;
  }

  void space() {
    while (take_one_of(" \t\n\r")) {
    }
  }
  bool take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool take_one_of(std::string_view set) {
    if (rest_.empty() || !set.contains(rest_[0])) return false;
    rest_.remove_prefix(1);
    return true;
  }

  static constexpr std::string_view kHex = "0123456789abcdefABCDEF";
  std::string_view rest_;
};

// A lock request with `value` in a field that nobody knows, which our rules promise to check all the same.
inline std::string lock_with_unknown(std::string_view value) {
  return R"({"type":"t","resource_id":"r","node_id":"n","unknown":)" + std::string(value) + "}";
}

// Puts texts to one parser, and counts, so that a test can say that it did not test nothing.
class Strictness {
 public:
  bool takes(std::string_view text) {
    body_.emplace(text);
    return parser_.parse_lock(body_->view()).has_value();
  }
  // As a whole body: taken only if it is JSON. (That it is does not suffice: fields may be missing.)
  void expect_taken_only_if_json(std::string_view text) {
    const bool taken = takes(text), json = JsonGrammar::is_json(text);
    taken ? ++taken_ : ++refused_;
    EXPECT_FALSE(taken && !json) << "taken, and is no JSON: " << testing::PrintToString(text);
  }
  // As the value of an unknown field: taken if and only if what comes about is JSON.
  void expect_as_grammar(std::string_view value) {
    const std::string text = lock_with_unknown(value);
    const bool taken = takes(text), json = JsonGrammar::is_json(text);
    taken ? ++taken_ : ++refused_;
    EXPECT_EQ(taken, json) << (json ? "is JSON: " : "is no JSON: ") << testing::PrintToString(text);
  }
  void expect(std::string_view value, bool json) {
    expect_as_grammar(value);
    EXPECT_EQ(takes(lock_with_unknown(value)), json) << testing::PrintToString(value);
  }

  size_t taken() const { return taken_; }
  size_t refused() const { return refused_; }

 private:
  RequestParser parser_;
  std::optional<Body> body_;
  size_t taken_ = 0, refused_ = 0;
};

}  // namespace turnstile
