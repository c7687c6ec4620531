#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

namespace turnstile {
namespace {

std::atomic<LogFormat> g_format{LogFormat::text};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = spdlog::stderr_logger_mt("turnstile");
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

// Both forms quote the same way, so that a hostile resource id cannot forge a line of its own.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (uint8_t(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", unsigned(uint8_t(c)));
    } else {
      out += c;
    }
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

void log_line(LogLevel level, std::string_view message, LogFields fields) {
  if (!log_enabled(level)) return;
  std::string line;
  const bool json = g_format == LogFormat::json;
  if (json) {
    line += "\"message\":";
    append_quoted(line, message);
  } else {
    line += message;
  }
  for (const LogField& field : fields) {
    if (json) {
      line += ',';
      append_quoted(line, field.name);
      line += ':';
    } else {
      line.append(" ").append(field.name).append("=");
    }
    const bool plain =
        !field.quoted || (!json && field.value.find_first_of(" \"\\\n\r\t") == std::string::npos);
    plain ? void(line += field.value) : append_quoted(line, field.value);
  }
  logger().log(to_spdlog(level), fmt::string_view("{}"), line);
}

}  // namespace turnstile
