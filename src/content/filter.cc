// The parser walks the text once, left to right:
//   filter   := selector (',' selector)*
//   selector := path [('==' | '!=' | '~=') value]
//   path     := part ('.' part)*          part  := quoted | letter (letter | digit | '_')*
//   value    := quoted | [^\s,]+          quoted: '…' or "…" with backslashes; after ~= also /…/ and |…|
#include "content/filter.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

namespace turnstile::content {
namespace {

constexpr size_t kMaxFilter = 64 * 1024;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }
bool ends_value(char c) { return c == ',' || c == ' ' || (c >= '\t' && c <= '\r') || c == '\0'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Outcome<std::vector<Selector>> parse() {
    std::vector<Selector> selectors;
    do {
      Outcome<Selector> selector = parse_selector();
      if (!selector) return std::unexpected(selector.error());
      selectors.push_back(std::move(*selector));
    } while (take(","));
    if (!at_end()) return stop("unexpected input");
    return selectors;
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  std::unexpected<ContentError> stop(std::string_view why) const {
    return fail(ErrorClass::invalid_argument, fmt::format("filter, at character {}: {}", at_ + 1, why));
  }

  Outcome<Selector> parse_selector() {
    Selector selector;
    do {
      Outcome<std::string> part = parse_part();
      if (!part) return std::unexpected(part.error());
      selector.path.push_back(std::move(*part));
    } while (take("."));
    if (at_end() || peek() == ',') return selector;
    if (take("=="))
      selector.op = Selector::Operator::equal;
    else if (take("!="))
      selector.op = Selector::Operator::not_equal;
    else if (take("~="))
      selector.op = Selector::Operator::matches;
    else
      return stop("expected ==, != or ~=");
    const bool expression = selector.op == Selector::Operator::matches;
    Outcome<std::string> value = parse_value(expression);
    if (!value) return std::unexpected(value.error());
    selector.value = std::move(*value);
    if (expression) {
      selector.expression = std::make_shared<const re2::RE2>(selector.value, re2::RE2::Quiet);
      if (!selector.expression->ok()) return stop(selector.expression->error());
    }
    return selector;
  }

  Outcome<std::string> parse_part() {
    if (peek() == '"' || peek() == '\'') return parse_quoted();
    if (!is_letter(peek())) return stop("expected the name of a field");
    const size_t begin = at_;
    while (is_word(peek())) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  Outcome<std::string> parse_value(bool expression) {
    if (peek() == '"' || peek() == '\'') return parse_quoted();
    if (expression && (peek() == '/' || peek() == '|')) return parse_expression();
    const size_t begin = at_;
    while (!at_end() && !ends_value(peek())) ++at_;
    if (at_ == begin) return stop("expected a value");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Outcome<std::string> parse_quoted() {
    const char quote = text_[at_++];
    std::string out;
    for (; !at_end(); ++at_) {
      const char c = peek();
      if (c == quote) return ++at_, out;
      if (c != '\\') {
        out += c;
        continue;
      }
      ++at_;
      constexpr std::string_view kNames = "ntr\\'\"", kValues = "\n\t\r\\'\"";
      const size_t which = at_end() ? std::string_view::npos : kNames.find(peek());
      if (which == std::string_view::npos) return stop("unknown escape");
      out += kValues[which];
    }
    return stop("a quote without end");
  }

  // A backslash belongs to the expression, unless it guards the character that would end it.
  Outcome<std::string> parse_expression() {
    const char quote = text_[at_++];
    std::string out;
    for (; !at_end(); ++at_) {
      if (peek() == quote) return ++at_, out;
      if (peek() == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        if (peek() != quote) out += '\\';
      }
      out += peek();
    }
    return stop("an expression without end");
  }

  std::string_view text_;
  size_t at_ = 0;
};

bool matches_one(const Selector& selector, const Filter::Field& field) {
  std::string key;
  for (size_t i = 1; i < selector.path.size(); ++i) key += (i > 1 ? "." : "") + selector.path[i];
  const std::optional<std::string_view> value = field(selector.path.front(), key);
  switch (selector.op) {
    case Selector::Operator::present:
      return value.has_value();
    case Selector::Operator::equal:
      return value && *value == selector.value;
    case Selector::Operator::not_equal:  // what is not there is not equal, either
      return !value || *value != selector.value;
    case Selector::Operator::matches:
      return re2::RE2::PartialMatch(value.value_or(std::string_view()), *selector.expression);
  }
  return false;
}

}  // namespace

Outcome<void> Filter::add(std::string_view text) {
  if (text.size() > kMaxFilter) return fail(ErrorClass::invalid_argument, "the filter is too long");
  std::vector<Selector> selectors;  // an empty filter has none, and so matches everything
  if (!text.empty()) {
    Outcome<std::vector<Selector>> parsed = Parser(text).parse();
    if (!parsed) return std::unexpected(parsed.error());
    selectors = std::move(*parsed);
  }
  any_of_.push_back(std::move(selectors));
  return {};
}

bool Filter::matches(const Field& field) const {
  if (any_of_.empty()) return true;
  return std::ranges::any_of(any_of_, [&](const std::vector<Selector>& all_of) {
    return std::ranges::all_of(all_of,
                               [&](const Selector& selector) { return matches_one(selector, field); });
  });
}

}  // namespace turnstile::content
