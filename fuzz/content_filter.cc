// containerd's filters. What must hold:
// - any text is accepted or refused with a place in it, and an accepted one can be matched against any blob;
// - a selector that is written in quotes means just what it says: present, equal, not equal.
#include "content/filter.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

using content::Filter;
using Text = std::optional<std::string_view>;

Text field_of_a_blob(std::string_view field, std::string_view key) {
  if (field == "digest") return "sha256:ab";
  if (field == "size") return "4096";
  if (field == "labels" && key == "containerd.io/gc.root") return "2026";
  if (field == "labels" && key == "a.b") return "c";
  return std::nullopt;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// A selector about a label that has `value`, or is not there.
void check_meaning(std::string_view label, std::string_view operand, Text value) {
  const auto field = [&](std::string_view name, std::string_view key) -> Text {
    TS_CHECK(name == "labels" && key == label, "a filter asks for the field that it names");
    return value;
  };
  const auto matches = [&](const std::string& text) {
    const auto filter = Filter::parse(std::initializer_list<std::string>{text});
    TS_CHECK(filter.has_value(), "a filter in quotes is accepted");
    return filter->matches(field);
  };
  const std::string path = "labels." + quoted(label);
  TS_CHECK(matches(path) == value.has_value(), "present means present");
  TS_CHECK(matches(path + "==" + quoted(operand)) == (value == operand), "equal means equal");
  TS_CHECK(matches(path + "!=" + quoted(operand)) == (value != operand), "not equal means not equal");
}

}  // namespace

void run(std::string_view bytes) {
  const ExactCopy copy(bytes);
  const auto filter = Filter::parse(std::initializer_list<std::string_view>{copy.view()});
  if (filter)
    filter->matches(field_of_a_blob);
  else
    TS_CHECK(filter.error().message.size() < 200 + bytes.size(), "an error is short");

  Input input(bytes);
  const uint8_t how = input.byte();
  const std::string_view label = input.short_text(), operand = input.short_text(), other = input.rest();
  check_meaning(label, operand, how % 3 == 0 ? Text() : how % 3 == 1 ? Text(operand) : Text(other));
}

}  // namespace turnstile::fuzz
