#include "cli/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/version.h"

namespace turnstile::cli {
namespace {

// exec's command is taken away before CLI11 sees it: none of its words are ours.
std::vector<std::string> without_command(const std::vector<std::string>& words, Context& context) {
  const auto mark = std::ranges::find(words, "--");
  if (mark == words.end() || std::find(words.begin(), mark, "exec") == mark) return words;
  context.command.assign(mark + 1, words.end());
  return {words.begin(), mark};
}

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

void add_everything(CLI::App& app, Context& context) {
  app.name("turnstile");
  app.set_version_flag("--version", fmt::format("turnstile {}", kVersion));
  app.add_option(
         "--server", context.servers,
         "http://HOST:PORT, https://HOST:PORT or unix:PATH; several with commas (http://127.0.0.1:8086)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("URL[,URL...]")
      ->envname("TURNSTILE_SERVER");
  app.add_option("--token-file", context.token_file, "a file with the bearer token to show")
      ->type_name("FILE");
  app.add_option("--node", context.node, "who this node is (the host's name)")->envname("TURNSTILE_NODE");
  const std::map<std::string, Output> outputs = {{"text", Output::text}, {"json", Output::json}};
  app.add_option("--output", context.output, "text for people, json for programs")
      ->transform(CLI::CheckedTransformer(outputs).description(""))
      ->type_name("text|json");
  app.require_subcommand(1);
  app.footer(exit_code_help());
  add_lock_commands(app, context);
  add_exec_command(app, context);
  add_look_commands(app, context);
  add_watch_command(app, context);
  add_refs_commands(app, context);
  add_top_command(app, context);
  add_bench_command(app, context);
  add_completion_command(app, context);
}

std::optional<int> parse(CLI::App& app, Context& context, const std::vector<std::string>& words) {
  std::vector<std::string> ours = without_command(words, context);
  std::ranges::reverse(ours);  // as CLI11 wants them
  try {
    app.parse(ours);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kOk;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return kOk;
  } catch (const CLI::ParseError& error) {
    return report(context.output, usage_message(app, error), "usage", kUsage);
  }
  return std::nullopt;
}

int run_program(const std::vector<std::string>& words) {
  CLI::App app("Locks for a cluster, from the command line.");
  Context context;
  add_everything(app, context);
  if (const std::optional<int> exit = parse(app, context, words)) return *exit;
  return context.run();
}

}  // namespace turnstile::cli
