#include "api/json_append.h"

namespace turnstile {

void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = uint8_t(c);
    switch (c) {
      case '"':
        out.append("\\\"");
        break;
      case '\\':
        out.append("\\\\");
        break;
      case '\n':
        out.append("\\n");
        break;
      case '\r':
        out.append("\\r");
        break;
      case '\t':
        out.append("\\t");
        break;
      default:
        if (byte >= 0x20 && byte != 0x7f) {
          out += c;
        } else {
          out.append("\\u00");
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        }
    }
  }
}

void append_texts_field(std::string& out, std::string_view name, std::span<const std::string_view> texts) {
  out.append(name) += '[';
  bool first = true;
  for (const std::string_view text : texts) {
    if (!first) out += ',';
    first = false;
    append_json_text(out, text);
  }
  out += ']';
}

}  // namespace turnstile
