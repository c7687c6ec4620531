// Structured logs: one line, a message and fields, as text for people or JSON for machines.
//
// An event of the log is a fixed message plus named values, so that one can search for it:
//   log_info("segment opened", {{"file", name}, {"batch", number}});
// Threads: any.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace turnstile {

enum class LogLevel { debug, info, warning, error, off };
enum class LogFormat { text, json };

struct LogField {
  std::string_view name;
  std::string value;
  bool quoted = true;  // in JSON

  LogField(std::string_view n, std::string_view v) : name(n), value(v) {}
  LogField(std::string_view n, const char* v) : name(n), value(v) {}
  LogField(std::string_view n, const std::string& v) : name(n), value(v) {}
  LogField(std::string_view n, bool v) : name(n), value(v ? "true" : "false"), quoted(false) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  LogField(std::string_view n, Number v) : name(n), value(fmt::to_string(v)), quoted(false) {}
};
using LogFields = std::initializer_list<LogField>;

void set_log(LogLevel level, LogFormat format);
bool log_enabled(LogLevel level);
// What log_line() writes behind time and level.
std::string format_log_line(LogFormat format, std::string_view message, LogFields fields);
void log_line(LogLevel level, std::string_view message, LogFields fields);

inline void log_info(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::info, message, fields);
}
inline void log_warning(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::warning, message, fields);
}
inline void log_error(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::error, message, fields);
}

}  // namespace turnstile
