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
#include "http/tls_context.h"

namespace turnstile {

// With several servers: where etcd is, and what this server is in it.
struct ReplicationSettings {
  std::vector<std::string> endpoints;  // http://HOST:PORT or https://HOST:PORT; none: one server alone
  std::string prefix;
  std::string ca, cert, key;  // files
  std::string user, password_file, password;
  std::string advertise;  // how others reach this server; empty: the first address that it listens on
  bool forwards = false;  // what a standby is asked it asks the leader
  Duration lease = std::chrono::seconds(5);
};

struct Settings {
  std::vector<std::string> listen;
  std::string store = "file:./turnstile-data";
  ReplicationSettings replication;  // with a store in etcd
  std::string copy_from;            // a store that is to be copied into `store`, instead of serving
  bool insecure = false;
  std::string credentials;         // the file; empty: nobody has to say who he is
  std::vector<std::string> hosts;  // further names of this server's, for Host and Origin
  std::string audit_log;           // a file, "journal" or "off"; empty: the ordinary log
  bool open_metrics = false;
  unsigned threads = 0;  // 0: one for each core but one
  size_t max_streams = 10'000;
  bool update_requires_no_ref = false;
  std::vector<OperationRules> operations;  // over the default table
  EngineSettings engine;
  ApiLimits api;
  http::Limits http;
  http::TlsFiles tls;
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
  std::vector<std::string> notices;  // what whoever starts it ought to know
};
Result<CommandLine> read_command_line(int argc, const char* const* argv, const Environment& environment);

// What to tell who starts the server of variables TURNSTILE_… that neither it nor another program of ours
// reads: a mistyped one would change nothing, and say nothing. `environment` is as environ(7).
std::vector<std::string> unknown_variables(const char* const* environment);

// Who may reach what it listens on is on purpose. Also for addresses that somebody else has chosen.
Result<void> check_listen(const Settings& settings);

// etcd://HOST:PORT,HOST:PORT/PREFIX, or etcds:// for members that speak TLS.
Result<void> parse_etcd_store(ReplicationSettings& settings, std::string_view store);

// NAME:on_success=share,references=add,guard=skip,voids=true; what is left out is a plain mutex's.
Result<OperationRules> parse_operation(std::string_view text);

}  // namespace turnstile
