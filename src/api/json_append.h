// The few strokes with which every answer is written: numbers, escaped texts, and the start of an object.
//
// Appending to a string that is reused costs no allocation once it has grown, and no tree is built only to be
// walked again.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/byte_scan.h"
#include "api/error.h"
#include "base/rfc3339.h"

namespace turnstile {

// The slow half of append_json_text: at least one byte needs an escape.
void append_escaped(std::string& out, std::string_view text);

// A JSON string with its quotes. UTF-8 passes as it is; control characters, 0x7f, quote and backslash are
// escaped.
inline void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  any_byte(text, escaped_bytes) ? append_escaped(out, text) : void(out.append(text));
  out += '"';
}

template <std::unsigned_integral Number>
void append_number(std::string& out, Number number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

// In these `name` is written as it is, with its quotes, colon and the comma before it: R"(,"token":)".
inline void append_text_field(std::string& out, std::string_view name, std::string_view text) {
  out.append(name);
  append_json_text(out, text);
}
template <std::unsigned_integral Number>
void append_number_field(std::string& out, std::string_view name, Number number) {
  out.append(name);
  append_number(out, number);
}
inline void append_bool_field(std::string& out, std::string_view name, bool value) {
  out.append(name).append(value ? "true" : "false");
}
inline void append_time_field(std::string& out, std::string_view name, Time time) {
  out.append(name) += '"';
  append_rfc3339(out, time);
  out += '"';
}
// ["a","b"]
void append_texts_field(std::string& out, std::string_view name, std::span<const std::string_view> texts);

// `{`, in a batch with the status as its first field: the next one brings its own name without a comma.
inline void begin_object(std::string& out, AnswerForm form, unsigned status) {
  out += '{';
  if (form == AnswerForm::alone) return;
  append_number_field(out, R"("status":)", status);
  out += ',';
}

}  // namespace turnstile
