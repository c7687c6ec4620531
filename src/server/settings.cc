// From flags, environment and file to Settings: the first that has a value decides, all values of one setting
// coming from one source.
#include "server/settings.h"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/did_you_mean.h"
#include "base/version.h"
#include "http/listener.h"

namespace turnstile {
namespace {

using Values = std::map<std::string, std::vector<std::string>>;

std::string environment_name(const std::string& setting) {
  std::string name = "TURNSTILE_";
  for (char c : setting) name += c == '-' ? '_' : char(std::toupper(c));
  return name;
}

std::string help_text() {
  std::string text =
      "turnstiled: a lock server; waiters skip work that another machine has done\n\n"
      "  turnstiled [--listen HOST:PORT]... [--store file:DIR|etcd://...|memory] [option]...\n\n"
      "examples\n"
      "  turnstiled                                        127.0.0.1:8086, state in ./turnstile-data\n"
      "  turnstiled --store memory --listen 127.0.0.1:0    forgets everything when it stops; prints the "
      "port\n"
      "  turnstiled --listen unix:/run/turnstile.sock --operation build:on_success=share\n\n"
      "options, each also as TURNSTILE_NAME in the environment and as a key of the file\n";
  const Settings defaults;
  for (const SettingRow& row : setting_rows()) {
    std::string value = row.show ? row.show(defaults) : "";
    if (row.name == "listen") value = "127.0.0.1:8086";
    const std::string flag = "--" + row.name + (row.argument.empty() ? "" : " " + row.argument);
    text += fmt::format("  {:<38} {}{}\n", flag, row.help, value.empty() ? "" : fmt::format(" ({})", value));
  }
  text +=
      "  --config FILE                          a TOML file with the options' names as keys\n"
      "  --version                              print the version\n"
      "  --help                                 this text\n\n"
      "Also read: PORT, ALLOW_MULTI_NODE_DOWNLOAD, UPDATE_REQUIRES_NO_REF.\n";
  return text;
}

struct Flags {
  Values values;
  std::string config;
  bool help = false, version = false;
};

std::string unknown_words(const std::vector<std::string>& words) {
  std::vector<std::string> known = {"--config", "--help", "--version"};
  for (const SettingRow& row : setting_rows()) known.push_back("--" + row.name);
  for (const std::string& word : words) {
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("there is no option {}{}; see turnstiled --help", name, did_you_mean(name, known));
  }
  return fmt::format("'{}' is not expected here: every setting has a name; see turnstiled --help",
                     words.empty() ? "" : words.front());
}

Result<Flags> read_flags(int argc, const char* const* argv) {
  Flags flags;
  CLI::App cli;
  cli.set_help_flag();
  cli.add_flag("--help,-h", flags.help);
  cli.add_flag("--version", flags.version);
  cli.add_option("--config", flags.config);
  std::map<std::string, bool> switches;
  for (const SettingRow& row : setting_rows()) {
    if (row.argument.empty())
      cli.add_flag("--" + row.name, switches[row.name]);
    else
      cli.add_option("--" + row.name, flags.values[row.name])->allow_extra_args(false)->expected(1, 1 << 16);
  }
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    return fail(unknown_words(cli.remaining()));
  } catch (const CLI::Error& error) {
    return fail(fmt::format("{}; see turnstiled --help", error.what()));
  }
  std::erase_if(flags.values, [](const auto& entry) { return entry.second.empty(); });
  for (const auto& [name, on] : switches)
    if (on) flags.values[name] = {"true"};
  return flags;
}

Result<Values> read_file(const std::string& path) {
  Values values;
  std::error_code ignored;
  if (::access(path.c_str(), R_OK) != 0) {
    if (errno == ENOENT) return fail(fmt::format("{}: there is no such file", path));
    return fail(fmt::format("{}: {}; the user that the server runs as must be able to read it", path,
                            std::strerror(errno)));
  }
  if (!std::filesystem::is_regular_file(path, ignored))
    return fail(fmt::format("{}: that is not a plain file; copy it into one", path));
  try {
    const toml::table table = toml::parse_file(path);
    for (const auto& [toml_key, node] : table) {
      std::string key(toml_key.str());
      std::replace(key.begin(), key.end(), '_', '-');
      std::vector<std::string> texts;
      bool plain = true;
      const auto add = [&](const auto& value) {
        if (value.is_string())
          texts.push_back(value.as_string()->get());
        else if (value.is_integer())
          texts.push_back(fmt::to_string(value.as_integer()->get()));
        else if (value.is_boolean())
          texts.push_back(value.as_boolean()->get() ? "true" : "false");
        else
          plain = false;
      };
      if (const toml::array* list = node.as_array())
        for (const toml::node& item : *list) add(item);
      else
        add(node);
      if (!plain)
        return fail(
            fmt::format("{}: the value of '{}' must be a text, a whole number, true or false, or a list of "
                        "these",
                        path, key));
      values[key] = std::move(texts);
    }
  } catch (const toml::parse_error& error) {
    return fail(fmt::format("{}:{}: {}; texts are in quotes: name = \"value\"", path,
                            error.source().begin.line, error.description()));
  }
  for (const auto& [key, texts] : values) {
    bool known = false;
    for (const SettingRow& row : setting_rows()) known = known || row.name == key;
    if (!known) return fail(fmt::format("{}: there is no setting '{}'; see turnstiled --help", path, key));
  }
  return values;
}

// Texts of repeatable settings are separated by ';', because rules have commas in them.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(';', from), text.size());
    if (to > from) parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

Values read_environment(const Environment& environment) {
  Values values;
  // The seeds' names first, so that ours override them.
  for (const char* name : {"ALLOW_MULTI_NODE_DOWNLOAD", "UPDATE_REQUIRES_NO_REF"}) {
    const std::optional<std::string> value = environment(name);
    if (!value || value->empty()) continue;
    std::string key(name);
    for (char& c : key) c = c == '_' ? '-' : char(std::tolower(c));
    values[key] = {*value};
  }
  for (const SettingRow& row : setting_rows()) {
    const std::optional<std::string> value = environment(environment_name(row.name));
    if (!value || value->empty()) continue;
    values[row.name] = row.repeatable ? split(*value) : std::vector{*value};
  }
  return values;
}

// Behind TURNSTILE_: variables of the other programs, what `turnstile exec` tells its command, and what
// Kubernetes and Docker say of a service called turnstile.
bool is_of_others(std::string_view name) {
  constexpr std::array kNames = {"SERVER",          "CA",       "CERT",        "KEY",       "CREDENTIAL",
                                 "CREDENTIAL_FILE", "NODE",     "TOKEN",       "ATTEMPT",   "PREVIOUS_ERROR",
                                 "OPERATION",       "RESOURCE", "PROGRESS_FD", "RESULT_FD", "NAME"};
  constexpr std::array kPrefixes = {"CONTENT_", "SERVICE_", "PORT", "ENV_"};
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kPrefixes, [&](const char* prefix) { return name.starts_with(prefix); });
}

// Somebody who changes the file wonders why nothing changes: a unit's environment is easily forgotten.
std::vector<std::string> overridden(const Values& environment, const Values& file, const std::string& path) {
  std::vector<std::string> notices;
  for (const auto& [name, texts] : environment) {
    const auto found = file.find(name);
    if (found != file.end() && found->second != texts)
      notices.push_back(
          fmt::format("{} in the environment wins over '{}' in {}", environment_name(name), name, path));
  }
  return notices;
}

Result<void> check_tls(const http::TlsFiles& tls) {
  if (tls.certificate.empty() != tls.key.empty()) return fail("--tls-cert and --tls-key belong together");
  if (!tls.client_ca.empty() && tls.certificate.empty())
    return fail("--tls-client-ca needs --tls-cert and --tls-key: only TLS asks for certificates");
  return {};
}

// How others reach this server: they put paths behind it.
Result<void> check_advertise(std::string& url) {
  if (url.empty()) return {};
  const auto wrong = [&](std::string_view why) {
    return fail(fmt::format("--advertise '{}' {}; give http://HOST:PORT or https://HOST:PORT", url, why));
  };
  const size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  if (scheme == 0) return wrong("has no http:// or https://");
  if (url.ends_with('/')) url.pop_back();
  const std::string_view place = std::string_view(url).substr(std::min(scheme, url.size()));
  if (place.find_first_of("/?#@ \t\r\n\\\"<>") != place.npos) return wrong("has more than a host and a port");
  const size_t bracket = place.starts_with('[') ? place.find(']') : 0;
  if (bracket == place.npos) return wrong("is no address");
  const size_t colon = place.find(':', bracket);
  const std::string_view host = place.substr(0, colon);
  if (host.empty()) return wrong("has no host");
  if (host == "0.0.0.0" || host == "[::]" || host == "*") return wrong("names no machine");
  if (colon == place.npos)
    return bracket == 0 || bracket + 1 == place.size() ? Result<void>() : wrong("is no address");
  unsigned port = 0;
  for (const char digit : place.substr(colon + 1))
    port = digit < '0' || digit > '9' || port > 65535 ? 99999 : port * 10 + unsigned(digit - '0');
  if (port == 0 || port > 65535) return wrong("has no port behind its colon");
  return {};
}

Result<void> complete_replication(ReplicationSettings& settings) {
  if (Result<void> right = check_advertise(settings.advertise); !right) return right;
  if (settings.lease < std::chrono::seconds(2) || settings.lease > std::chrono::seconds(60))
    return fail("--leader-lease is from 2s to 60s");
  if (settings.password_file.empty()) return {};
  std::ifstream file(settings.password_file);
  if (!std::getline(file, settings.password))
    return fail(fmt::format("--etcd-password-file {}: there is no such file, or it is empty",
                            settings.password_file));
  return {};
}

Result<void> complete(Settings& settings, const std::optional<std::string>& port) {
  // One of the largest requests fits, however large it may be: it would be told to try again for ever.
  settings.http.max_loop_input =
      std::max(settings.http.max_loop_input, settings.http.max_head + settings.http.max_body);
  if (settings.listen.empty()) settings.listen = {"127.0.0.1:" + port.value_or("8086")};
  if (Result<void> whole = check_tls(settings.tls); !whole) return whole;
  std::vector<OperationRules> operations = default_operations(settings.update_requires_no_ref);
  for (const OperationRules& own : settings.operations) {
    std::erase_if(operations, [&](const OperationRules& other) { return other.name == own.name; });
    operations.push_back(own);
  }
  settings.engine.operations = std::move(operations);
  return complete_replication(settings.replication);
}

// Of a server on a machine that has others beside it: 0.0.0.0 is where it listens, and no address to reach it
// by.
bool is_everywhere(std::string_view address) {
  if (const size_t scheme = address.find("://"); scheme != address.npos) address.remove_prefix(scheme + 3);
  constexpr std::array<std::string_view, 4> kEverywhere{"0.0.0.0:", "[::]:", "*:", ":"};
  return std::ranges::any_of(kEverywhere, [&](std::string_view each) { return address.starts_with(each); });
}

}  // namespace

Result<void> check_listen(const Settings& settings) {
  const bool replicated = !settings.replication.endpoints.empty();
  if (replicated && settings.replication.advertise.empty() && !settings.listen.empty() &&
      is_everywhere(settings.listen.front()))
    return fail(
        fmt::format("'{}' does not say how the other servers and their clients reach this one; give "
                    "--advertise http://HOST:PORT",
                    settings.listen.front()));
  if (replicated && settings.replication.advertise.empty() && !settings.listen.empty() &&
      settings.listen.front().starts_with("unix:"))
    return fail(
        fmt::format("'{}' cannot be reached from other machines, where the other servers send their clients "
                    "here; give --advertise http://HOST:PORT",
                    settings.listen.front()));
  const bool asks = !settings.credentials.empty() || !settings.tls.client_ca.empty();
  for (const std::string& address : settings.listen) {
    if (address.find(':') == address.npos)
      return fail(fmt::format(
          "--listen {}: that is not an address; give HOST:PORT, for example 127.0.0.1:8086", address));
    if (settings.insecure || http::is_loopback(address)) continue;
    const bool tls = address.starts_with("https://") ||
                     (!settings.tls.certificate.empty() && !address.starts_with("http://"));
    if (!asks)
      return fail(
          fmt::format("'{}' can be reached from other machines, and callers need not log in; give "
                      "--credentials FILE, listen on 127.0.0.1, or add --insecure if you trust every machine "
                      "that reaches it",
                      address));
    if (!tls)
      return fail(
          fmt::format("'{}' can be reached from other machines, and without TLS anybody on the network can "
                      "read secrets; give --tls-cert and --tls-key, listen on 127.0.0.1, or add --insecure",
                      address));
  }
  return {};
}

std::vector<std::string> unknown_variables(const char* const* environment) {
  constexpr std::string_view kOurs = "TURNSTILE_", kHint = "; did you mean ";
  std::vector<std::string> settings = {"CONFIG"}, unknown;
  for (const SettingRow& row : setting_rows())
    settings.push_back(environment_name(row.name).substr(kOurs.size()));
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view line = *environment;
    const std::string_view name = line.substr(0, line.find('='));
    if (!name.starts_with(kOurs) || name.size() + 1 >= line.size()) continue;  // an empty one says nothing
    const std::string rest(name.substr(kOurs.size()));
    if (std::ranges::find(settings, rest) != settings.end() || is_of_others(rest)) continue;
    std::string hint = did_you_mean(rest, settings);
    if (!hint.empty()) hint = fmt::format(" (did you mean {}{})", kOurs, hint.substr(kHint.size()));
    unknown.push_back(std::string(name) + hint);
  }
  if (unknown.empty()) return {};
  return {fmt::format("nothing reads these variables of the environment: {}", fmt::join(unknown, ", "))};
}

Result<CommandLine> read_command_line(int argc, const char* const* argv, const Environment& environment) {
  Result<Flags> flags = read_flags(argc, argv);
  if (!flags) return fail(flags.error().message);
  if (flags->help) return CommandLine{std::nullopt, help_text(), {}};
  if (flags->version) return CommandLine{std::nullopt, fmt::format("turnstiled {}\n", kVersion), {}};

  struct Source {
    std::string name;
    Values values;
  };
  std::vector<Source> sources{{"--", flags->values}, {"TURNSTILE_", read_environment(environment)}};
  const std::string config =
      flags->config.empty() ? environment("TURNSTILE_CONFIG").value_or("") : flags->config;
  if (!config.empty()) {
    Result<Values> file = read_file(config);
    if (!file) return fail(file.error().message);
    sources.push_back({config + ": ", *std::move(file)});
  }

  Settings settings;
  for (const SettingRow& row : setting_rows()) {
    for (const Source& source : sources) {
      const auto found = source.values.find(row.name);
      if (found == source.values.end()) continue;
      if (!row.repeatable && found->second.size() != 1)
        return fail(fmt::format("{}{} is given more than once", source.name, row.name));
      for (const std::string& value : found->second)
        if (Result<void> set = row.set(settings, value); !set)
          return fail(fmt::format("{}{}: {}", source.name, row.name, set.error().message));
      break;
    }
  }
  settings.replication.password = environment("TURNSTILED_ETCD_PASSWORD").value_or("");
  if (Result<void> completed = complete(settings, environment("PORT")); !completed)
    return fail(completed.error().message);
  if (Result<void> safe = check_listen(settings); !safe) return fail(safe.error().message);
  CommandLine line{std::move(settings), "", {}};
  if (!config.empty()) line.notices = overridden(sources[1].values, sources[2].values, config);
  return line;
}

}  // namespace turnstile
