// See settings.h.
#include "content/settings.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/did_you_mean.h"
#include "base/duration.h"
#include "base/version.h"
#include "content/blob_store.h"
#include "http/listener.h"

namespace turnstile::content {
namespace {

using Values = std::map<std::string, std::vector<std::string>>;

struct Row {
  const char *name, *argument, *help;
  Command of = Command::serve;  // those of serve are known to all, for one file of settings
};
constexpr Row kRows[] = {
    {"socket", "PATH", "where containerd finds this plugin; nobody else may write to its directory"},
    {"server", "URL[,URL...]",
     "the lock server, or all servers if one of them leads; without it this node works alone"},
    {"ca", "FILE", "the CA of the servers' certificates (the system's CAs)"},
    {"cert", "FILE", "this node's certificate, if the server wants one"},
    {"key", "FILE", "the certificate's key"},
    {"credential-file", "FILE", "a file with the secret for the server"},
    {"insecure-credential", "", "send the secret also over plain http to another machine"},
    {"node", "NAME", "this node's name; letters, digits, '.', '_', '-'"},
    {"root", "DIR", "where this node writes blobs and unfinished downloads"},
    {"read-root", "DIR", "where other nodes' blobs are seen (repeatable)"},
    {"state", "DIR", "this node's own database: which blobs it uses, and their labels"},
    {"without-server", "wait|pull",
     "while no server answers: make containerd wait, or download without asking (wait)"},
    {"visible-within", "DURATION", "how long a mount may take to show what another node has written (10s)"},
    {"stalled-after", "DURATION",
     "let another node take over a download that has stood still for this long (2m; 0s: never)"},
    {"settled-after", "DURATION",
     "remove nothing for this long after the server's start, while nodes say what they use (20s)"},
    {"keep-unused", "DURATION", "how long to keep blobs that this node no longer uses (0s: not at all)"},
    {"keep-unused-bytes", "BYTES",
     "how many bytes of unused blobs to keep, the newest first; K, M, G, T (no limit)"},
    {"verify-every", "DURATION", "read all blobs of this node once in this time, slowly (0s: never)"},
    {"references", "server|client",
     "who counts the nodes that use a blob; as turnstiled --references (server)"},
    {"references-dir", "DIR",
     "with client: the directory of the counts, shared by all nodes (references below --root)"},
    {"metrics-listen", "HOST:PORT",
     "where to serve /metrics, /healthz and /readyz; port 0: any free port (nowhere)"},
    {"insecure", "", "allow an address for --metrics-listen that other machines can reach"},
    {"log-level", "LEVEL", "debug, info, warning, error or off (info)"},
    {"sample", "N|N%", "read only this many blobs, or a percentage, chosen at random (all)", Command::verify},
    {"rate", "BYTES", "read at most this many bytes a second; K, M, G, T (no limit)", Command::verify},
    {"put-away", "", "move damaged blobs to damaged/ below --root, so that no node reads them",
     Command::verify},
    {"from", "DIR", "containerd's store: .../io.containerd.content.v1.content", Command::import},
    {"to", "DIR", "containerd's store, as for import", Command::export_store},
};

struct CommandRow {
  const char* name;
  Command command;
  const char* help;
};
constexpr CommandRow kCommands[] = {
    {"verify", Command::verify,
     "reads what the node uses and prints what is gone or damaged; the plugin may run"},
    {"import", Command::import,
     "copies the blobs of containerd's own store into --root; the plugin must not run"},
    {"export-store", Command::export_store, "copies what the node uses to containerd's own store"},
};

std::string help_text() {
  std::string text =
      "turnstile-content: a content store for containerd in which every blob is downloaded once in a "
      "cluster\n\n"
      "  turnstile-content --socket PATH --node NAME --root DIR --state DIR [--server URL] [option]...\n\n"
      "options. Each is also TURNSTILE_CONTENT_NAME in the environment and a key of the file. For --server,\n"
      "--ca, --cert, --key and --credential-file TURNSTILE_NAME works, too; TURNSTILE_CREDENTIAL is the "
      "secret\n"
      "itself. The plugin reads certificates and credential again when they change.\n";
  const auto add_rows = [&](Command of) {
    for (const Row& row : kRows)
      if (row.of == of)
        text += fmt::format("  {:<28} {}\n", fmt::format("--{} {}", row.name, row.argument), row.help);
  };
  add_rows(Command::serve);
  text +=
      "  --config FILE                a TOML file with the options' names as keys\n"
      "  --version                    print the version\n"
      "  --help                       this text\n\n"
      "commands; each needs the node's --node, --root, --read-root and --state, or its --config\n";
  for (const CommandRow& command : kCommands) {
    text += fmt::format("  turnstile-content {}: {}\n", command.name, command.help);
    add_rows(command.command);
  }
  return text +
         "\n"
         "one directory that all nodes share:\n"
         "  turnstile-content --socket /run/turnstile-content/content.sock --node $(hostname) --server "
         "http://locks:8086 \\\n"
         "    --root /srv/shared --state /var/lib/turnstile-content/state\n"
         "a disk for each node, all of them seen through one mount:\n"
         "  ... --root /srv/disk --read-root /srv/all\n";
}

// What the command line `turnstile` reads, too.
constexpr std::string_view kOfTheWay[] = {"server", "ca", "cert", "key", "credential-file"};

// The variables that have decided something, by the setting's name.
using Decided = std::map<std::string, std::string>;

Decided read_environment(const Environment& environment, Values& values) {
  Decided decided;
  for (auto& [name, texts] : values) {
    if (!texts.empty()) continue;  // a flag has decided
    std::string upper;
    for (char c : name) upper += c == '-' ? '_' : char(std::toupper(c));
    std::vector<std::string> variables = {"TURNSTILE_CONTENT_" + upper};
    if (std::ranges::count(kOfTheWay, name) > 0) variables.push_back("TURNSTILE_" + upper);
    for (const std::string& variable : variables) {
      const std::optional<std::string> value = environment(variable);
      if (!value) continue;
      texts = {*value};
      decided[name] = variable;
      break;
    }
  }
  return decided;
}

std::vector<std::string> split_list(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (std::string_view rest : texts)
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      if (comma > 0) all.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  return all;
}

std::optional<std::vector<std::string>> texts_of(const toml::node& node) {
  std::vector<std::string> texts;
  const toml::array* list = node.as_array();
  for (size_t i = 0; i < (list != nullptr ? list->size() : 1); ++i) {
    const std::optional<std::string> text = list != nullptr     ? (*list)[i].value<std::string>()
                                            : node.is_boolean() ? (node.value_or(false) ? "true" : "false")
                                                                : node.value<std::string>();
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

// The notices name what the file says in vain: a unit's environment is easily forgotten.
Result<std::vector<std::string>> read_file(const std::string& path, const Decided& decided, Values& values) {
  std::vector<std::string> notices;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return fail(fmt::format("{}: there is no such file", path));
  try {
    for (const auto& [toml_key, node] : toml::parse_file(path)) {
      std::string key(toml_key.str());
      std::replace(key.begin(), key.end(), '_', '-');
      if (!values.contains(key)) return fail(fmt::format("{}: there is no setting '{}'", path, key));
      const std::optional<std::vector<std::string>> texts = texts_of(node);
      if (!texts) return fail(fmt::format("{}: '{}' must be a text, or a list of texts", path, key));
      if (values[key].empty())
        values[key] = *texts;
      else if (const auto by = decided.find(key);
               by != decided.end() && split_list(values[key]) != split_list(*texts))
        notices.push_back(fmt::format("{} in the environment wins over '{}' in {}", by->second, key, path));
    }
  } catch (const toml::parse_error& error) {
    return fail(fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
  return notices;
}

template <class Choice>
Result<void> choose(const Values& values, const std::string& name,
                    const std::map<std::string, Choice>& choices, Choice& out) {
  const std::vector<std::string>& given = values.at(name);
  if (given.empty()) return {};
  const auto found = choices.find(given.back());
  if (found == choices.end()) {
    std::string words;
    for (const auto& [word, choice] : choices) words += (words.empty() ? "" : "|") + word;
    return fail(fmt::format("--{}: '{}' is none of {}", name, given.back(), words));
  }
  out = found->second;
  return {};
}

Result<void> read_duration(const Values& values, const std::string& name, std::chrono::milliseconds& out) {
  const std::vector<std::string>& given = values.at(name);
  if (given.empty()) return {};
  const Result<Duration> parsed = parse_duration(given.back());
  if (!parsed) return fail(fmt::format("--{}: {}", name, parsed.error().message));
  out = std::chrono::duration_cast<std::chrono::milliseconds>(*parsed);
  return {};
}

// "20", or "5%" of them.
Result<void> read_sample(const Values& values, CommandSettings& settings) {
  const std::vector<std::string>& given = values.at("sample");
  if (given.empty()) return {};
  const std::string& text = given.back();
  const bool is_share = text.ends_with('%');
  double number = 0;
  const char* end = text.data() + text.size() - (is_share ? 1 : 0);
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end || !(number > 0) || (is_share ? number > 100 : number > 1e12))
    return fail(
        fmt::format("--sample: '{}' is neither a number of blobs nor a percentage; write 100 or 5%", text));
  if (is_share)
    settings.percentage = number;
  else
    settings.sample = size_t(number);
  return {};
}

// A number, or one with K, M, G or T: times 1024, once to four times.
Result<void> read_bytes(const Values& values, const std::string& name, int64_t& out) {
  const std::vector<std::string>& given = values.at(name);
  if (given.empty()) return {};
  const std::string& text = given.back();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, size_t(text.data() + text.size() - end));
  const std::string_view units = "KMGT";
  const size_t power = unit.empty() ? 0 : units.find(unit) + 1;
  if (error != std::errc() || unit.size() > 1 || (!unit.empty() && power == 0) ||
      number > (uint64_t(INT64_MAX) >> (10 * power)))
    return fail(fmt::format("--{}: '{}' is not a size; write a number, then K, M, G or T if you like: 200G",
                            name, text));
  out = int64_t(number << (10 * power));
  return {};
}

Result<void> read_keeping(const Values& values, Settings& settings) {
  for (const auto& [name, member] : {std::pair{"visible-within", &Settings::visible_within},
                                     {"stalled-after", &Settings::stalled_after},
                                     {"settled-after", &Settings::settled_after},
                                     {"keep-unused", &Settings::keep_unused},
                                     {"verify-every", &Settings::verify_every}})
    if (Result<void> read = read_duration(values, name, settings.*member); !read) return read;
  if (Result<void> read = read_bytes(values, "keep-unused-bytes", settings.keep_unused_bytes); !read)
    return read;
  if (settings.keep_unused_bytes > 0 && settings.keep_unused.count() == 0)
    return fail("--keep-unused-bytes needs --keep-unused: how long to keep them");
  return {};
}

Result<void> read_references(const Values& values, Settings& settings) {
  if (Result<void> chosen = choose<ReferencesBy>(
          values, "references", {{"server", ReferencesBy::server}, {"client", ReferencesBy::client}},
          settings.references);
      !chosen)
    return chosen;
  if (!values.at("references-dir").empty()) settings.references_dir = values.at("references-dir").back();
  if (settings.references == ReferencesBy::server) {
    if (settings.references_dir.empty()) return {};
    return fail("--references-dir is only for --references client");
  }
  if (settings.servers.empty())
    return fail("--references client needs --server: only under its locks are references safe");
  if (settings.references_dir.empty() && !settings.read_roots.empty())
    return fail(
        "--references client needs --references-dir when each node has a root of its own: a directory that "
        "all "
        "nodes share, for example one below --read-root");
  return {};
}

Result<void> read_metrics_listen(const Values& values, std::string& out) {
  bool insecure = false;
  if (Result<void> chosen = choose<bool>(
          values, "insecure", {{"true", true}, {"1", true}, {"false", false}, {"0", false}}, insecure);
      !chosen)
    return chosen;
  if (!values.at("metrics-listen").empty()) out = values.at("metrics-listen").back();
  if (!out.empty() && !insecure && !http::is_loopback(out))
    return fail(fmt::format(
        "--metrics-listen: '{}' can be reached from other machines, and callers need not log in; listen on "
        "127.0.0.1, or add --insecure",
        out));
  return {};
}

Result<void> read_way_to_server(const Values& values, const Environment& environment, Settings& settings) {
  settings.servers = split_list(values.at("server"));
  for (const auto& [name, member] : {std::pair{"ca", &Settings::ca},
                                     {"cert", &Settings::cert},
                                     {"key", &Settings::key},
                                     {"credential-file", &Settings::credential_file}})
    if (!values.at(name).empty()) settings.*member = values.at(name).back();
  if (settings.credential_file.empty())
    settings.credential = environment("TURNSTILE_CREDENTIAL").value_or("");
  return choose<bool>(values, "insecure-credential",
                      {{"true", true}, {"1", true}, {"false", false}, {"0", false}},
                      settings.insecure_credential);
}

Result<void> read_command(const Values& values, Settings& settings) {
  CommandSettings& command = settings.of_command;
  if (Result<void> read = read_sample(values, command); !read) return read;
  if (Result<void> read = read_bytes(values, "rate", command.rate); !read) return read;
  command.put_away = !values.at("put-away").empty();
  for (const auto& [name, of, member] : {std::tuple{"from", Command::import, &CommandSettings::from},
                                         {"to", Command::export_store, &CommandSettings::to}}) {
    if (settings.command != of) continue;
    if (values.at(name).empty() || values.at(name).back().empty())
      return fail(fmt::format("--{} is missing; see turnstile-content --help", name));
    command.*member = values.at(name).back();
  }
  return {};
}

Result<Settings> settings_from(const Values& values, Command command, const Environment& environment) {
  Settings settings;
  settings.command = command;
  for (const auto& [name, member] : {std::pair{"socket", &Settings::socket},
                                     {"node", &Settings::node},
                                     {"root", &Settings::root},
                                     {"state", &Settings::state}}) {
    const bool needed = command == Command::serve || member != &Settings::socket;
    if (needed && (values.at(name).empty() || values.at(name).back().empty()))
      return fail(fmt::format("--{} is missing; see turnstile-content --help", name));
    if (!values.at(name).empty()) settings.*member = values.at(name).back();
  }
  if (!is_plain_name(settings.node))
    return fail(fmt::format("--node: '{}' must consist of letters, digits, '.', '_' and '-'", settings.node));
  if (Result<void> read = read_command(values, settings); !read) return std::unexpected(read.error());
  if (Result<void> read = read_way_to_server(values, environment, settings); !read)
    return std::unexpected(read.error());
  settings.read_roots = values.at("read-root");
  if (Result<void> chosen = choose<WithoutServer>(
          values, "without-server", {{"wait", WithoutServer::wait}, {"pull", WithoutServer::pull}},
          settings.without_server);
      !chosen)
    return std::unexpected(chosen.error());
  if (Result<void> read = read_keeping(values, settings); !read) return std::unexpected(read.error());
  if (Result<void> read = read_references(values, settings); !read) return std::unexpected(read.error());
  if (Result<void> read = read_metrics_listen(values, settings.metrics_listen); !read)
    return std::unexpected(read.error());
  const std::map<std::string, LogLevel> levels = {{"debug", LogLevel::debug},
                                                  {"info", LogLevel::info},
                                                  {"warning", LogLevel::warning},
                                                  {"error", LogLevel::error},
                                                  {"off", LogLevel::off}};
  if (Result<void> chosen = choose(values, "log-level", levels, settings.log_level); !chosen)
    return std::unexpected(chosen.error());
  return settings;
}

// An option of another command, of none, or a word that no option takes.
std::string unknown_word(const std::vector<std::string>& words, Command command) {
  std::vector<std::string> known = {"--config", "--help", "--version"}, commands;
  for (const Row& row : kRows)
    if (row.of == Command::serve || row.of == command) known.push_back(fmt::format("--{}", row.name));
  for (const CommandRow& row : kCommands) commands.emplace_back(row.name);
  const std::string word = words.empty() ? "" : words.front().substr(0, words.front().find('='));
  if (!word.starts_with("-"))
    return fmt::format("'{}' is not a command{}", word, did_you_mean(word, commands));
  for (const Row& row : kRows)
    if (word == fmt::format("--{}", row.name))
      for (const CommandRow& other : kCommands)
        if (row.of == other.command) return fmt::format("{} is an option of {}", word, other.name);
  return fmt::format("there is no option {}{}", word, did_you_mean(word, known));
}

}  // namespace

Result<CommandLine> read_command_line(int argc, const char* const* argv, const Environment& environment) {
  Command command = Command::serve;
  if (argc > 1)
    for (const CommandRow& row : kCommands)
      if (argv[1] == std::string_view(row.name)) command = row.command;
  if (command != Command::serve) {  // the name of the program is not looked at
    --argc;
    ++argv;
  }
  Values values;
  std::string config;
  bool help = false, version = false;
  CLI::App cli;
  cli.set_help_flag();
  cli.add_flag("--help,-h", help);
  cli.add_flag("--version", version);
  cli.add_option("--config", config);
  for (const Row& row : kRows) {
    std::vector<std::string>& given = values[row.name];
    if (row.of != Command::serve && row.of != command) continue;
    const std::string flag = fmt::format("--{}", row.name);
    if (*row.argument == '\0') {
      cli.add_flag_callback(flag, [&given] { given = {"true"}; });
    } else {
      cli.add_option(flag, given)->allow_extra_args(false)->expected(1, 1 << 16);
    }
  }
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    return fail(fmt::format("{}; see turnstile-content --help", unknown_word(cli.remaining(), command)));
  } catch (const CLI::Error& error) {
    return fail(fmt::format("{}; see turnstile-content --help", error.what()));
  }
  if (help) return CommandLine{std::nullopt, help_text(), {}};
  if (version) return CommandLine{std::nullopt, fmt::format("turnstile-content {}\n", kVersion), {}};
  const Decided decided = read_environment(environment, values);
  if (config.empty()) config = environment("TURNSTILE_CONTENT_CONFIG").value_or("");
  std::vector<std::string> notices;
  if (!config.empty()) {
    Result<std::vector<std::string>> read = read_file(config, decided, values);
    if (!read) return std::unexpected(read.error());
    notices = std::move(*read);
  }
  Result<Settings> settings = settings_from(values, command, environment);
  if (!settings) return std::unexpected(settings.error());
  return CommandLine{std::move(*settings), {}, std::move(notices)};
}

}  // namespace turnstile::content
