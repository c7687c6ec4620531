// What a user can set, from flags, then the environment, then a TOML file (docs/settings.md).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/limits.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/settings.h"
#include "http/http.h"

namespace turnstile {

struct Settings {
  std::vector<std::string> listen;
  std::string store = "file:./turnstile-data";
  bool insecure = false;
  unsigned threads = 0;  // 0: one for each core but one
  size_t max_streams = 10'000;
  bool update_requires_no_ref = false;
  std::vector<OperationRules> operations;  // over the default table
  EngineSettings engine;
  ApiLimits api;
  http::Limits http;
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::text;
};

// One row of the table that flags, environment, file, --help and /version all come from.
struct SettingRow {
  std::string name;      // as the flag without --
  std::string argument;  // what --help shows behind it; empty: a switch
  std::string help;
  bool repeatable = false;
  // Sets it, or says what is wrong with the value.
  std::function<Result<void>(Settings&, const std::string& value)> set;
  // The value in force, for /version.
  std::function<std::string(const Settings&)> show;
};
const std::vector<SettingRow>& setting_rows();

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// What the command line asks for: to run with these settings, or only to print something and leave.
struct CommandLine {
  std::optional<Settings> run;
  std::string print;
};
Result<CommandLine> read_command_line(int argc, const char* const* argv, const Environment& environment);

// Who may reach what it listens on is on purpose. Also for addresses that somebody else has chosen.
Result<void> check_listen(const Settings& settings);

// NAME:on_success=share,references=add,guard=skip,voids=true; what is left out is a plain mutex's.
Result<OperationRules> parse_operation(std::string_view text);

}  // namespace turnstile
