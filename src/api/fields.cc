#include "api/fields.h"

#include "api/name_table.h"

namespace turnstile {
namespace {

// Both in the order of Field.
constexpr std::array<std::string_view, kFields> kNames{
    "type",        "resource_id", "node_id", "request_id", "scope",  "wait_ms",   "lease_ms", "monitor",
    "dereference", "info",        "token",   "success",    "error",  "permanent", "keep_ms",  "result",
    "done",        "total",       "reason",  "call",       "prefix", "state",     "limit",    "cursor",
    "after",       "contains",    "node",    "sort",       "count",  "names",
};
static_assert(!kNames.back().empty());
constexpr NameTable<kFields> kFieldTable(kNames);

constexpr FieldSet kIntegers(Field::wait_ms, Field::lease_ms, Field::token, Field::keep_ms, Field::done,
                             Field::total, Field::limit, Field::count, Field::names);
constexpr FieldSet kBooleans(Field::monitor, Field::dereference, Field::success, Field::permanent);

}  // namespace

std::string_view name_of(Field field) { return kNames[size_t(field)]; }

FieldKind kind_of(Field field) {
  if (kIntegers.has(field)) return FieldKind::integer;
  return kBooleans.has(field) ? FieldKind::boolean : FieldKind::text;
}

std::optional<Field> find_field(std::string_view name) {
  const size_t index = kFieldTable.find(name);
  if (index == kFieldTable.kNotFound) return std::nullopt;
  return Field(index);
}

}  // namespace turnstile
