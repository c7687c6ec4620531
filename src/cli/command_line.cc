#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/did_you_mean.h"
#include "cli/exit_code.h"

namespace turnstile::cli {
namespace {

// "a, b or c"
std::string one_of_text(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return out;
}

std::string given_words(const CLI::App& command) {
  std::string out = command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() || option->count() == 0) continue;
    for (const std::string& word : option->results()) out += " " + word;
  }
  return out;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

constexpr const char* kTakesACommand = "-- COMMAND...";

class CommandFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    usage.insert(usage.find_last_not_of('\n') + 1, std::string(" ") + kTakesACommand);
    return usage;
  }
};

bool takes_a_command(const CLI::App& command) {
  return dynamic_cast<const CommandFormatter*>(command.get_formatter().get()) != nullptr;
}

// Words that no option or argument took.
std::string surplus_message(const CLI::App& command, const std::vector<std::string>& surplus) {
  const std::string given = given_words(command), all = fmt::format("{}", fmt::join(surplus, " "));
  const std::string& first = surplus.front();
  if (first.starts_with("--")) {
    const std::string name = first.substr(0, first.find('='));
    const std::vector<std::string> known = options_of(command);
    if (std::ranges::count(known, name) > 0) {
      return fmt::format("{} is an option of {}: write it after that word: turnstile {} {}", name,
                         command.get_name(), given, all);
    }
    return fmt::format("{} has no option {}{}", command.get_name(), name, did_you_mean(name, known));
  }
  if (takes_a_command(command)) {
    return fmt::format("write -- before the command to run: turnstile {} -- {}", given, all);
  }
  const bool number = first.find_first_not_of("0123456789") == std::string::npos;
  if (number && command.get_option_no_throw("--token") != nullptr) {
    return fmt::format("give the token with --token: turnstile {} --token {}", given, all);
  }
  return fmt::format("'{}' was not expected after: turnstile {}", all, given);
}

// CLI11 writes "Could not convert: --token = abc" and "--wait: 1 required DURATION missing".
std::string value_message(const std::string& text) {
  constexpr std::string_view kWrong = "Could not convert: ", kEquals = " = ", kMissing = ": 1 required ";
  if (const size_t equals = text.find(kEquals); text.starts_with(kWrong) && equals != text.npos) {
    return fmt::format("{}: '{}' is not a whole number, or too large",
                       text.substr(kWrong.size(), equals - kWrong.size()),
                       text.substr(equals + kEquals.size()));
  }
  if (const size_t missing = text.find(kMissing); missing != text.npos && text.ends_with(" missing")) {
    return fmt::format("{} needs a value", text.substr(0, missing));
  }
  return text;
}

std::string no_command_message(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining();
  if (rest.empty()) return "no command was given";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  const std::string hint = did_you_mean(rest.front(), names);
  if (hint.empty() && rest.size() > 1 && !rest.front().starts_with("-")) {
    return fmt::format(
        "'{0}' is no command; did you mean: turnstile lock {0} {1}, or: turnstile exec {0} {1} -- COMMAND?",
        rest[0], rest[1]);
  }
  return fmt::format("'{}' is no command{}", rest.front(), hint);
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  const std::string name = commands.empty() ? "" : " " + commands.back()->get_name();
  std::string message = value_message(error.what());
  if (commands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    message = no_command_message(app);
  } else if (const std::vector<std::string> surplus = app.remaining(true);
             !commands.empty() && !surplus.empty() &&
             dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    message = surplus_message(*commands.back(), surplus);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
             takes_a_command(*commands.back())) {
    message +=
        fmt::format(": turnstile{}{} {}", name, name == " once" ? " KEY" : " TYPE RESOURCE", kTakesACommand);
  }
  return fmt::format("{}; see turnstile{} --help", message, name);
}

}  // namespace

Option Option::required(bool required) { return Option(option_->required(required)); }
Option Option::one_of(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& word) {
    return std::ranges::count(words, word) > 0
               ? std::string()
               : fmt::format("must be {}, not '{}'{}", one_of_text(words), word, did_you_mean(word, words));
  };
  return Option(option_->check(check)->type_name(fmt::format("{}", fmt::join(words, "|"))));
}
Option Option::between(int least, int most) {
  return Option(option_->check([least, most](const std::string& word) {
    int value = 0;
    const bool fits = CLI::detail::lexical_cast(word, value) && value >= least && value <= most;
    return fits ? std::string() : fmt::format("must be a number from {} to {}, not '{}'", least, most, word);
  }));
}
Option Option::between(double least, double most) {
  return Option(option_->check([least, most](const std::string& word) {
    double value = 0;
    const bool fits = CLI::detail::lexical_cast(word, value) && value >= least && value <= most;
    return fits ? std::string() : fmt::format("must be a number from {} to {}, not '{}'", least, most, word);
  }));
}
Option Option::needs(Option other) { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) { return Option(option_->excludes(other.option_)); }
Option Option::from_environment(const std::string& variable) { return Option(option_->envname(variable)); }
Option Option::shown_as(const std::string& value) { return Option(option_->type_name(value)); }
bool Option::given() const { return option_->count() > 0; }

Command Command::command(const std::string& name, const std::string& description,
                         const std::string& examples) {
  CLI::App* command = app_->add_subcommand(name, description);
  command->fallthrough();  // --server and the like may stand behind the command, too
  command->footer(
      "Examples:\n" + examples +
      "\nEvery command also takes --server, --node, --output and the others of turnstile --help.\n" +
      exit_code_help());
  return Command(*command);
}

Option Command::option(const std::string& name, std::string& value, const std::string& description) {
  return Option(app_->add_option(name, value, description)->type_name(name.starts_with("-") ? "TEXT" : ""));
}
Option Command::option(const std::string& name, int& value, const std::string& description) {
  return Option(app_->add_option(name, value, description)->type_name("N"));
}
Option Command::option(const std::string& name, uint32_t& value, const std::string& description) {
  return Option(app_->add_option(name, value, description)->type_name("N"));
}
Option Command::option(const std::string& name, uint64_t& value, const std::string& description) {
  return Option(app_->add_option(name, value, description)->type_name("N"));
}
Option Command::option(const std::string& name, double& value, const std::string& description) {
  return Option(app_->add_option(name, value, description)->type_name("N"));
}
Option Command::option(const std::string& name, Output& value, const std::string& description) {
  const auto take = [&value](const std::string& word) {
    value = word == "json" ? Output::json : Output::text;
  };
  return Option(app_->add_option_function<std::string>(name, take, description)).one_of({"text", "json"});
}
Option Command::list(const std::string& name, std::vector<std::string>& values,
                     const std::string& description) {
  return Option(app_->add_option(name, values, description)->delimiter(',')->allow_extra_args(false));
}
Option Command::list(const std::string& name, std::vector<int>& values, const std::string& description) {
  return Option(app_->add_option(name, values, description)->delimiter(',')->allow_extra_args(false));
}

Option Command::duration(const std::string& name, std::optional<Milliseconds>& value,
                         const std::string& description) {
  const CLI::callback_t take = [name, &value](const CLI::results_t& texts) {
    const Result<Milliseconds> parsed = parse_duration(texts.front());
    if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
    value = *parsed;
    return true;
  };
  return Option(app_->add_option(name, take, description)->type_name("DURATION")->type_size(1));
}

Option Command::flag(const std::string& name, bool& value, const std::string& description) {
  return Option(app_->add_flag(name, value, description));
}

void Command::lane(Lane& lane, bool required) {
  option("TYPE", lane.type, "the operation: pull, update, delete, once, or a name of your own: a plain mutex")
      .required(required);
  option("RESOURCE", lane.resource, "what the work is done on: a digest, a table, any name")
      .required(required);
}

void Command::takes_a_command() { app_->formatter(std::make_shared<CommandFormatter>()); }

void Command::when_given(std::function<void()> act) { app_->callback(std::move(act)); }

std::string Command::name() const { return app_->get_name(); }

std::vector<std::string> Command::option_names() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<Command> Command::commands() const {
  std::vector<Command> commands;
  for (CLI::App* command : app_->get_subcommands({})) commands.emplace_back(*command);
  return commands;
}

CommandLine::CommandLine(const std::string& version)
    : CommandLine(std::make_unique<CLI::App>("Locks for a cluster, from the command line.")) {
  app_->name("turnstile");
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->footer(
      "Examples:\n"
      "  turnstile once nightly-$(date +%F) --keep 20h -- ./report.sh   one node runs it, the others skip\n"
      "  turnstile list --state held\n"
      "turnstile COMMAND --help has more.\n\n" +
      exit_code_help());
}
CommandLine::CommandLine(std::unique_ptr<CLI::App> app) : Command(*app), owned_(std::move(app)) {}
CommandLine::CommandLine(CommandLine&&) noexcept = default;
CommandLine::~CommandLine() = default;

std::optional<CommandLine::NoCommand> CommandLine::parse(std::vector<std::string> words) {
  if (!words.empty() && words.front() == "help") {  // as many programs have it
    words.erase(words.begin());
    words.push_back("--help");
  }
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    app_->parse(words);
  } catch (const CLI::CallForHelp&) {
    return NoCommand{.wrong = false, .text = app_->help()};
  } catch (const CLI::CallForVersion& version) {
    return NoCommand{.wrong = false, .text = fmt::format("{}\n", version.what())};
  } catch (const CLI::ParseError& error) {
    return NoCommand{.wrong = true, .text = usage_message(*app_, error)};
  }
  return std::nullopt;
}

}  // namespace turnstile::cli
