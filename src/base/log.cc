#include "base/log.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/stderr_sink.h"

namespace turnstile {
namespace {

std::atomic<LogFormat> g_format{LogFormat::text};

spdlog::logger& logger() {
  static const auto instance = std::make_shared<spdlog::logger>(
      "turnstile", std::make_shared<StderrSink>([](uint64_t lines) {
        return format_log_line(g_format, "lines of the log were lost, because nobody read them",
                               {{"lines", lines}});
      }));
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// One character of UTF-8 at the front of a text.
struct Character {
  uint32_t code;
  size_t size;  // in bytes; 0: the first byte begins no character
};

// Follows table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF.
Character first_character(std::string_view text) {
  const uint8_t lead = uint8_t(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return {lead, 0};
  uint32_t code = lead & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((uint8_t(text[i]) & 0xC0) != 0x80) return {lead, 0};
    code = code << 6 | (uint8_t(text[i]) & 0x3Fu);
  }
  const bool overlong = code < (size == 4 ? 0x10000u : size == 3 ? 0x800u : 0x80u);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {lead, 0};
  return {code, size};
}

// Whether a terminal could take it for something else than a letter: ESC begins a command, and so do the
// controls of C1 (U+009B does the work of ESC and a bracket).
bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

bool is_harmless(std::string_view text, std::string_view unwanted) {
  while (!text.empty()) {
    const Character next = first_character(text);
    if (next.size == 0 || is_control(next.code) || unwanted.find(text[0]) != unwanted.npos) return false;
    text.remove_prefix(next.size);
  }
  return true;
}

// Both forms quote the same way, so that a hostile resource id cannot forge a line of its own, and what is
// printed is UTF-8 that moves no cursor. A byte that is not part of a character becomes U+FFFD.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const Character next = first_character(text);
    if (next.size == 0) {
      out += "\\ufffd";
    } else if (is_control(next.code)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", next.code);
    } else {
      if (next.code == '"' || next.code == '\\') out += '\\';
      out += text.substr(0, next.size);
    }
    text.remove_prefix(std::max<size_t>(next.size, 1));
  }
  out += '"';
}

}  // namespace

void set_log(LogLevel level, LogFormat format) {
  g_format = format;
  logger().set_level(to_spdlog(level));
  logger().flush_on(spdlog::level::debug);
  logger().set_pattern(format == LogFormat::json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%f%z","level":"%l",%v})"
                                                 : "%Y-%m-%d %H:%M:%S.%e %L %v");
}

bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }

std::string format_log_line(LogFormat format, std::string_view message, LogFields fields) {
  std::string line;
  const bool json = format == LogFormat::json;
  const auto append = [&](std::string_view text, std::string_view unwanted) {
    !json&& is_harmless(text, unwanted) ? void(line += text) : append_quoted(line, text);
  };
  if (json) line += "\"message\":";
  append(message, "");
  for (const LogField& field : fields) {
    if (json) {
      line += ',';
      append_quoted(line, field.name);
      line += ':';
    } else {
      line.append(" ").append(field.name).append("=");
    }
    field.quoted ? append(field.value, " \"\\") : void(line += field.value);
  }
  return line;
}

void log_line(LogLevel level, std::string_view message, LogFields fields) {
  if (!log_enabled(level)) return;
  logger().log(to_spdlog(level), fmt::string_view("{}"), format_log_line(g_format, message, fields));
}

}  // namespace turnstile
