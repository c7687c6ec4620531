// The table of all settings. Adding one here adds its flag, its environment variable, its key in the file,
// its line in --help and its place in /version.
#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/duration.h"
#include "server/settings.h"

namespace turnstile {
namespace {

using Set = decltype(SettingRow::set);

template <class Number>
Result<Number> parse_number(const std::string& text, Number least, Number most) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= least && number <= most)
    return number;
  return fail(fmt::format("'{}' is not a whole number from {} to {}", text, least, most));
}

Result<bool> parse_bool(const std::string& text) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  return fail(fmt::format("'{}' is neither true nor false", text));
}

template <class Field>
SettingRow duration_row(std::string name, std::string help, Field field) {
  return {
      std::move(name),
      "DURATION",
      std::move(help),
      false,
      [field](Settings& settings, const std::string& value) -> Result<void> {
        const Result<Duration> parsed = parse_duration(value);
        if (!parsed) return fail(parsed.error().message);
        field(settings) = *parsed;
        return {};
      },
      [field](const Settings& settings) { return show_duration(field(const_cast<Settings&>(settings))); }};
}

template <class Field>
SettingRow number_row(std::string name, std::string help, uint64_t least, uint64_t most, Field field) {
  return {
      std::move(name),
      "N",
      std::move(help),
      false,
      [field, least, most](Settings& settings, const std::string& value) -> Result<void> {
        const Result<uint64_t> parsed = parse_number<uint64_t>(value, least, most);
        if (!parsed) return fail(parsed.error().message);
        field(settings) = static_cast<std::remove_reference_t<decltype(field(settings))>>(*parsed);
        return {};
      },
      [field](const Settings& settings) { return fmt::to_string(field(const_cast<Settings&>(settings))); }};
}

template <class Field>
SettingRow bool_row(std::string name, std::string argument, std::string help, Field field) {
  return {std::move(name),
          std::move(argument),
          std::move(help),
          false,
          [field](Settings& settings, const std::string& value) -> Result<void> {
            const Result<bool> parsed = parse_bool(value);
            if (!parsed) return fail(parsed.error().message);
            field(settings) = *parsed;
            return {};
          },
          [field](const Settings& settings) {
            return field(const_cast<Settings&>(settings)) ? "true" : "false";
          }};
}

template <class Value, class Field>
SettingRow choice_row(std::string name, std::string help,
                      const std::vector<std::pair<std::string, Value>>& words, Field field) {
  std::string argument;
  for (const auto& [word, value] : words) argument += (argument.empty() ? "" : "|") + word;
  return {std::move(name),
          argument,
          std::move(help),
          false,
          [=](Settings& settings, const std::string& value) -> Result<void> {
            for (const auto& [word, meaning] : words) {
              if (word != value) continue;
              field(settings) = meaning;
              return {};
            }
            return fail(fmt::format("'{}' is none of {}", value, argument));
          },
          [=](const Settings& settings) -> std::string {
            for (const auto& [word, meaning] : words)
              if (field(const_cast<Settings&>(settings)) == meaning) return word;
            return "";
          }};
}

template <class Field>
SettingRow text_row(std::string name, std::string argument, std::string help, Field field) {
  return {std::move(name),
          std::move(argument),
          std::move(help),
          false,
          [field](Settings& settings, const std::string& value) -> Result<void> {
            field(settings) = value;
            return {};
          },
          [field](const Settings& settings) { return field(const_cast<Settings&>(settings)); }};
}

Result<void> set_store(Settings& settings, const std::string& value) {
  if (value.starts_with("etcd://") || value.starts_with("etcds://")) {
    settings.store = value;
    return parse_etcd_store(settings.replication, value);
  }
  if (value != "memory" && !(value.starts_with("file:") && value.size() > 5))
    return fail(fmt::format("'{}' is no store; write memory, file:DIR or etcd://HOST:PORT,…/PREFIX", value));
  settings.store = value;
  return {};
}

void add_basics(std::vector<SettingRow>& rows) {
  rows.push_back(
      {"listen", "HOST:PORT",
       "where to listen; also https://HOST:PORT, http://HOST:PORT, unix:PATH; port 0 = any free port; "
       "repeatable",
       true,
       [](Settings& settings, const std::string& value) -> Result<void> {
         settings.listen.push_back(value);
         return {};
       },
       [](const Settings& settings) { return fmt::format("{}", fmt::join(settings.listen, " ")); }});
  rows.push_back({"store", "STORE", "where state is kept: memory, file:DIR, or etcd://HOST:PORT,…/PREFIX",
                  false, set_store, [](const Settings& settings) { return settings.store; }});
  rows.push_back(bool_row("insecure", "",
                          "listen on network addresses although callers need not log in, or without TLS",
                          [](Settings& s) -> bool& { return s.insecure; }));
  rows.push_back(
      text_row("tls-cert", "FILE",
               "the server's certificate (PEM): TCP listeners then speak TLS, except those with http://",
               [](Settings& s) -> std::string& { return s.tls.certificate; }));
  rows.push_back(text_row("tls-key", "FILE", "the certificate's key (PEM)",
                          [](Settings& s) -> std::string& { return s.tls.key; }));
  rows.push_back(text_row("tls-client-ca", "FILE",
                          "ask clients for a certificate, and accept only those of this CA (PEM)",
                          [](Settings& s) -> std::string& { return s.tls.client_ca; }));
  rows.push_back(number_row("threads", "HTTP threads; 0 = one for each core but one", 0, 128,
                            [](Settings& s) -> unsigned& { return s.threads; }));
  rows.push_back(number_row("shards", "the number of tables that hold the resources", 1, 65536,
                            [](Settings& s) -> uint32_t& { return s.engine.shards; }));
}

void add_replication(std::vector<SettingRow>& rows) {
  using Standbys = std::vector<std::pair<std::string, bool>>;
  rows.push_back(text_row("advertise", "URL", "with etcd://: how clients and other servers reach this one",
                          [](Settings& s) -> std::string& { return s.replication.advertise; }));
  rows.push_back(choice_row("standby", "with etcd://: what a server does with requests while another leads",
                            Standbys{{"redirect", false}, {"forward", true}},
                            [](Settings& s) -> bool& { return s.replication.forwards; }));
  rows.push_back(duration_row("leader-lease", "with etcd://: how long a silent leader still leads",
                              [](Settings& s) -> Duration& { return s.replication.lease; }));
  rows.push_back(text_row("etcd-ca", "FILE", "the CA of the certificates of etcd's members",
                          [](Settings& s) -> std::string& { return s.replication.ca; }));
  rows.push_back(text_row("etcd-cert", "FILE", "this server's certificate for etcd",
                          [](Settings& s) -> std::string& { return s.replication.cert; }));
  rows.push_back(text_row("etcd-key", "FILE", "... and its key",
                          [](Settings& s) -> std::string& { return s.replication.key; }));
  rows.push_back(text_row("etcd-user", "NAME", "this server's user in etcd",
                          [](Settings& s) -> std::string& { return s.replication.user; }));
  rows.push_back(text_row("etcd-password-file", "FILE",
                          "... and its password; also TURNSTILED_ETCD_PASSWORD, which is never shown",
                          [](Settings& s) -> std::string& { return s.replication.password_file; }));
}

void add_copy(std::vector<SettingRow>& rows) {
  rows.push_back({"copy-from", "STORE", "copy that store into --store (must be empty) and exit", false,
                  [](Settings& settings, const std::string& value) -> Result<void> {
                    settings.copy_from = value;
                    return {};
                  },
                  nullptr});
}

void add_access(std::vector<SettingRow>& rows) {
  rows.push_back(text_row("credentials", "FILE",
                          "who may do what: a TOML file (docs/http-api.md), read again on SIGHUP",
                          [](Settings& s) -> std::string& { return s.credentials; }));
  rows.push_back(bool_row("open-metrics", "BOOL", "/metrics and /version need no credential",
                          [](Settings& s) -> bool& { return s.open_metrics; }));
  rows.push_back(
      {"host", "NAME[:PORT]", "another name by which clients and browsers reach this server; repeatable",
       true,
       [](Settings& settings, const std::string& value) -> Result<void> {
         if (value.find_first_of("/ @") != value.npos)
           return fail(fmt::format("'{}' is not a host; write NAME or NAME:PORT", value));
         settings.hosts.push_back(value);
         return {};
       },
       [](const Settings& settings) { return fmt::format("{}", fmt::join(settings.hosts, " ")); }});
  rows.push_back(text_row("audit-log", "FILE|journal|off",
                          "where to record log-ins, refusals and what admins do; default: the log",
                          [](Settings& s) -> std::string& { return s.audit_log; }));
}

void add_rules(std::vector<SettingRow>& rows) {
  using Scopes = std::vector<std::pair<std::string, Scope>>;
  using Keepers = std::vector<std::pair<std::string, bool>>;
  rows.push_back(choice_row("scope",
                            "what a request without a scope excludes: its operation, or all of the resource",
                            Scopes{{"operation", Scope::operation}, {"resource", Scope::resource}},
                            [](Settings& s) -> Scope& { return s.engine.default_scope; }));
  rows.push_back(choice_row("references", "who keeps the reference counts",
                            Keepers{{"server", true}, {"client", false}},
                            [](Settings& s) -> bool& { return s.engine.server_keeps_references; }));
  rows.push_back(bool_row("allow-multi-node-download", "BOOL",
                          "queue requests for a busy lane; false: refuse them",
                          [](Settings& s) -> bool& { return s.engine.allow_multi_node_download; }));
  rows.push_back(bool_row("update-requires-no-ref", "BOOL", "refuse an update while nodes use the resource",
                          [](Settings& s) -> bool& { return s.update_requires_no_ref; }));
  rows.push_back(
      {"operation", "NAME:RULES",
       "rules of an operation: on_success=share|handoff,references=add|keep|clear,guard=none|skip|refuse,"
       "voids=true|false; repeatable",
       true,
       [](Settings& settings, const std::string& value) -> Result<void> {
         Result<OperationRules> rules = parse_operation(value);
         if (!rules) return fail(rules.error().message);
         settings.operations.push_back(*std::move(rules));
         return {};
       },
       nullptr});
  rows.push_back(duration_row("retain-completed", "how long a success counts: later requests skip",
                              [](Settings& s) -> Duration& { return s.engine.retain_completed; }));
  rows.push_back(duration_row("max-keep", "the longest keep_ms that a success may have",
                              [](Settings& s) -> Duration& { return s.engine.max_keep; }));
  rows.push_back(duration_row("retain-permanent-failure", "how long a permanent failure is remembered",
                              [](Settings& s) -> Duration& { return s.engine.retain_permanent_failure; }));
  rows.push_back(duration_row("retain-released", "how long a repeated unlock is recognized",
                              [](Settings& s) -> Duration& { return s.engine.retain_released; }));
  rows.push_back(duration_row("claim-timeout", "how long a waiter may take to claim its grant",
                              [](Settings& s) -> Duration& { return s.engine.claim_timeout; }));
  rows.push_back(duration_row("bond-grace", "how long a bond may stay broken before its hold or wait ends",
                              [](Settings& s) -> Duration& { return s.engine.bond_grace; }));
  rows.push_back(duration_row("max-hold", "the longest hold with neither lease nor monitor; 0 = no limit",
                              [](Settings& s) -> Duration& { return s.engine.max_hold; }));
  rows.push_back(duration_row("stall-timeout",
                              "end a hold whose reported progress has not moved for this long; 0 = off",
                              [](Settings& s) -> Duration& { return s.engine.stall_timeout; }));
}

void add_limits(std::vector<SettingRow>& rows) {
  constexpr uint64_t kMany = 100'000'000;
  rows.push_back(number_row("max-queue", "how many waiters a lane may have", 1, kMany,
                            [](Settings& s) -> uint32_t& { return s.engine.max_queue; }));
  rows.push_back(number_row("max-resources", "how many resources the server may know", 1, 100 * kMany,
                            [](Settings& s) -> size_t& { return s.engine.max_resources; }));
  rows.push_back(number_row("max-references", "how many references all resources together may have", 1,
                            100 * kMany, [](Settings& s) -> size_t& { return s.engine.max_references; }));
  rows.push_back(number_row("max-waiters", "how many waiters all queues together may have", 1, 100 * kMany,
                            [](Settings& s) -> size_t& { return s.engine.max_waiters; }));
  rows.push_back(number_row("max-result-memory", "how many bytes all kept results together may have", 0,
                            uint64_t(1) << 40,
                            [](Settings& s) -> size_t& { return s.engine.max_result_memory; }));
  rows.push_back(number_row("max-body", "how many bytes the body of a request may have", 1024, 1 << 30,
                            [](Settings& s) -> size_t& { return s.http.max_body; }));
  rows.push_back(number_row("max-connections", "how many connections may be open", 1, kMany,
                            [](Settings& s) -> size_t& { return s.http.max_connections; }));
  rows.push_back(number_row("max-streams", "how many event streams may be open", 0, kMany,
                            [](Settings& s) -> size_t& { return s.max_streams; }));
  rows.push_back(number_row("max-type", "how many bytes a type may have", 1, 4096,
                            [](Settings& s) -> size_t& { return s.api.type; }));
  rows.push_back(number_row("max-resource-id", "how many bytes a resource_id may have", 1, 32768,
                            [](Settings& s) -> size_t& { return s.api.resource_id; }));
  rows.push_back(number_row("max-node-id", "how many bytes a node_id may have", 1, 32768,
                            [](Settings& s) -> size_t& { return s.api.node_id; }));
  rows.push_back(number_row("max-request-id", "how many bytes a request_id may have", 1, 32768,
                            [](Settings& s) -> size_t& { return s.api.request_id; }));
  rows.push_back(number_row("max-error", "how many bytes an error may have", 1, 1 << 20,
                            [](Settings& s) -> size_t& { return s.api.error; }));
  rows.push_back(number_row("max-info", "how many bytes an info may have", 1, 1 << 20,
                            [](Settings& s) -> size_t& { return s.api.info; }));
  rows.push_back(number_row("max-result", "how many bytes a result may have", 1, 1 << 20,
                            [](Settings& s) -> size_t& { return s.api.result; }));
  rows.push_back(duration_row("header-timeout", "how long the head of a request may take to arrive",
                              [](Settings& s) -> Duration& { return s.http.header_timeout; }));
  rows.push_back(duration_row("handshake-timeout", "how long a TLS handshake may take",
                              [](Settings& s) -> Duration& { return s.http.handshake_timeout; }));
  rows.push_back(duration_row("body-timeout", "how long the body of a request may take to arrive",
                              [](Settings& s) -> Duration& { return s.http.body_timeout; }));
  rows.push_back(duration_row("idle-timeout", "how long a connection may be idle between two requests",
                              [](Settings& s) -> Duration& { return s.http.idle_timeout; }));
}

void add_logs(std::vector<SettingRow>& rows) {
  using Levels = std::vector<std::pair<std::string, LogLevel>>;
  using Formats = std::vector<std::pair<std::string, LogFormat>>;
  rows.push_back(choice_row("log-level", "debug logs every decision",
                            Levels{{"debug", LogLevel::debug},
                                   {"info", LogLevel::info},
                                   {"warning", LogLevel::warning},
                                   {"error", LogLevel::error},
                                   {"off", LogLevel::off}},
                            [](Settings& s) -> LogLevel& { return s.log_level; }));
  rows.push_back(choice_row("log-format", "log lines as text, or one JSON object a line",
                            Formats{{"text", LogFormat::text}, {"json", LogFormat::json}},
                            [](Settings& s) -> LogFormat& { return s.log_format; }));
}

}  // namespace

const std::vector<SettingRow>& setting_rows() {
  static const std::vector<SettingRow> rows = [] {
    std::vector<SettingRow> made;
    add_basics(made);
    add_access(made);
    add_replication(made);
    add_copy(made);
    add_rules(made);
    add_limits(made);
    add_logs(made);
    return made;
  }();
  return rows;
}

}  // namespace turnstile
