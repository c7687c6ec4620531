#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "cli/exit_code.h"

namespace turnstile::cli {
namespace {

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  const std::string name = commands.empty() ? "" : " " + commands.back()->get_name();
  std::string message = error.what();
  if (commands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::vector<std::string> rest = app.remaining();
    message = rest.empty() ? "no command was given" : fmt::format("'{}' is no command", rest.front());
  }
  return fmt::format("{}; see turnstile{} --help", message, name);
}

}  // namespace

Option Option::required(bool required) { return Option(option_->required(required)); }
Option Option::one_of(std::vector<std::string> words) {
  return Option(option_->check(CLI::IsMember(std::move(words))));
}
Option Option::between(int least, int most) { return Option(option_->check(CLI::Range(least, most))); }
Option Option::between(double least, double most) { return Option(option_->check(CLI::Range(least, most))); }
Option Option::needs(Option other) { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) { return Option(option_->excludes(other.option_)); }
Option Option::from_environment(const std::string& variable) { return Option(option_->envname(variable)); }
Option Option::shown_as(const std::string& value) { return Option(option_->type_name(value)); }
bool Option::given() const { return option_->count() > 0; }

Command Command::command(const std::string& name, const std::string& description,
                         const std::string& examples) {
  CLI::App* command = app_->add_subcommand(name, description);
  command->fallthrough();  // --server and the like may stand behind the command, too
  command->footer("Examples:\n" + examples + "\n" + exit_code_help());
  return Command(*command);
}

Option Command::option(const std::string& name, std::string& value, const std::string& description) {
  return Option(app_->add_option(name, value, description));
}
Option Command::option(const std::string& name, int& value, const std::string& description) {
  return Option(app_->add_option(name, value, description));
}
Option Command::option(const std::string& name, uint32_t& value, const std::string& description) {
  return Option(app_->add_option(name, value, description));
}
Option Command::option(const std::string& name, uint64_t& value, const std::string& description) {
  return Option(app_->add_option(name, value, description));
}
Option Command::option(const std::string& name, double& value, const std::string& description) {
  return Option(app_->add_option(name, value, description));
}
Option Command::option(const std::string& name, Output& value, const std::string& description) {
  const std::map<std::string, Output> outputs = {{"text", Output::text}, {"json", Output::json}};
  return Option(app_->add_option(name, value, description)
                    ->transform(CLI::CheckedTransformer(outputs).description(""))
                    ->type_name("text|json"));
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
  const auto take = [name, &value](const std::string& text) {
    const Result<Milliseconds> parsed = parse_duration(text);
    if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
    value = *parsed;
  };
  return Option(app_->add_option_function<std::string>(name, take, description)->type_name("DURATION"));
}

Option Command::flag(const std::string& name, bool& value, const std::string& description) {
  return Option(app_->add_flag(name, value, description));
}

void Command::lane(Lane& lane, bool required) {
  option("TYPE", lane.type, "the operation: pull, update, delete, or a name of your own").required(required);
  option("RESOURCE", lane.resource, "what it is done to").required(required);
}

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
  app_->footer(exit_code_help());
}
CommandLine::CommandLine(std::unique_ptr<CLI::App> app) : Command(*app), owned_(std::move(app)) {}
CommandLine::CommandLine(CommandLine&&) noexcept = default;
CommandLine::~CommandLine() = default;

std::optional<CommandLine::NoCommand> CommandLine::parse(std::vector<std::string> words) {
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
