// The fields that a request can have, and their values before anybody has judged them.
//
// JSON bodies and query strings are both read into Fields; from there on they are the same, so that a rule
// about a field is written once (commands.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace turnstile {

enum class Field : uint8_t {
  type,
  resource_id,
  node_id,
  request_id,
  scope,
  wait_ms,
  lease_ms,
  monitor,
  dereference,
  info,
  token,
  success,
  error,
  permanent,
  keep_ms,
  result,
  done,
  total,
  reason,
  call,
  prefix,
  state,
  limit,
  cursor,
  after,
  contains,
  node,
  sort,
  count,
  names,
};
inline constexpr size_t kFields = size_t(Field::names) + 1;

enum class FieldKind : uint8_t { text, integer, boolean };

std::string_view name_of(Field field);
FieldKind kind_of(Field field);
std::optional<Field> find_field(std::string_view name);

// A set of fields: those that a call knows, those that a request has.
class FieldSet {
 public:
  constexpr FieldSet() = default;
  template <class... More>
  constexpr explicit FieldSet(Field first, More... more) : bits_((bit(first) | ... | bit(more))) {}

  constexpr bool has(Field field) const { return bits_ & bit(field); }
  constexpr void add(Field field) { bits_ |= bit(field); }
  constexpr FieldSet operator|(FieldSet other) const {
    other.bits_ |= bits_;
    return other;
  }

 private:
  static constexpr uint32_t bit(Field field) { return uint32_t(1) << uint8_t(field); }
  uint32_t bits_ = 0;
};
static_assert(kFields <= 32);

// Stands for a number that is below or above what every field may have, so that the field's own range
// (commands.cc) refuses it, and says what it is.
inline constexpr uint64_t kOutsideEveryRange = UINT64_MAX;

// What a request says, field by field. Texts are views into whatever it was read from.
// Invariant: a value is meaningful only if `given` has its field.
class Fields {
 public:
  void clear() { seen_ = given_ = FieldSet(); }

  // The field occurs, perhaps with null. False: for the second time.
  bool see(Field field) {
    if (seen_.has(field)) return false;
    seen_.add(field);
    return true;
  }
  void set_text(Field field, std::string_view text) {
    if (text.empty()) return;  // an empty text counts as absent
    given_.add(field);
    texts_[size_t(field)] = text;
  }
  void set_number(Field field, uint64_t number) {
    given_.add(field);
    numbers_[size_t(field)] = number;
  }

  bool has(Field field) const { return given_.has(field); }
  std::string_view text(Field field) const { return has(field) ? texts_[size_t(field)] : std::string_view(); }
  // Booleans are 0 and 1.
  uint64_t number(Field field) const { return has(field) ? numbers_[size_t(field)] : 0; }
  bool is_true(Field field) const { return number(field) != 0; }

 private:
  FieldSet seen_, given_;
  std::array<std::string_view, kFields> texts_;
  std::array<uint64_t, kFields> numbers_;
};

}  // namespace turnstile
