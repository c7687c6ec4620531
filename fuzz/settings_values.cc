// The values of settings: durations, numbers, choices, rules of operations. What must hold:
// - any text is accepted or refused with a message that names it;
// - what /version shows of an accepted value is accepted and means the same;
// - a duration is not negative, and is shown in a form that is read back exactly.
#include "base/duration.h"
#include "server/settings.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

void check_duration(std::string_view text) {
  const Result<Duration> parsed = parse_duration(text);
  if (!parsed) return;
  TS_CHECK(parsed->count() >= 0, "a duration is not negative");
  const Result<Duration> again = parse_duration(show_duration(*parsed));
  TS_CHECK(again && *again == *parsed, "a duration is shown so that it is read back");
}

void check_row(const SettingRow& row, const std::string& value) {
  static const Settings defaults;
  Settings settings = defaults;
  if (!row.set(settings, value) || !row.show) return;
  const std::string shown = row.show(settings);
  Settings again = defaults;
  if (row.repeatable && shown.empty()) return;
  TS_CHECK(row.set(again, shown).has_value(), "what is shown of a setting can be set");
  TS_CHECK(row.show(again) == shown, "what is shown of a setting means the same");
}

void check_operation(const std::string& text) {
  const Result<OperationRules> rules = parse_operation(text);
  if (!rules) return;
  TS_CHECK(!rules->name.empty() && text.starts_with(rules->name + ":"),
           "the rules are those of the operation named");
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t which = input.byte();
  const ExactCopy copy(input.rest());
  check_duration(copy.view());
  const std::string value(copy.view());
  check_operation(value);
  const auto& rows = setting_rows();
  check_row(rows[which % rows.size()], value);
}

}  // namespace turnstile::fuzz
