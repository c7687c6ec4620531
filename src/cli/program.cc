#include "cli/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/standard_streams.h"
#include "base/version.h"

namespace turnstile::cli {
namespace {

// The command of exec and once is taken away before CLI11 sees it: none of its words are ours.
std::vector<std::string> without_command(const std::vector<std::string>& words, Context& context) {
  const auto mark = std::ranges::find(words, "--");
  const auto runs = [](const std::string& word) { return word == "exec" || word == "once"; };
  if (mark == words.end() || std::find_if(words.begin(), mark, runs) == mark) return words;
  context.command.assign(mark + 1, words.end());
  return {words.begin(), mark};
}

int parse_and_run(Context& context, const std::vector<std::string>& words) {
  CommandLine program = make_command_line(context);
  if (const std::optional<int> exit = parse(program, context, words)) return *exit;
  context.complete();
  return context.run();
}

}  // namespace

CommandLine make_command_line(Context& context) {
  CommandLine program(fmt::format("turnstile {}", kVersion));
  program
      .list("--server", context.servers,
            "http://HOST:PORT, https://HOST:PORT or unix:PATH; several with commas (http://127.0.0.1:8086)")
      .shown_as("URL[,URL...]")
      .from_environment("TURNSTILE_SERVER");
  program.option("--ca", context.ca, "the CA of the servers' certificates (the system's CAs)")
      .shown_as("FILE")
      .from_environment("TURNSTILE_CA");
  program.option("--cert", context.cert, "this client's certificate, if the server wants one")
      .shown_as("FILE")
      .from_environment("TURNSTILE_CERT");
  program.option("--key", context.key, "its key").shown_as("FILE").from_environment("TURNSTILE_KEY");
  program
      .option("--credential-file", context.credential_file,
              "a file with the secret (Env:TURNSTILE_CREDENTIAL_FILE; the secret itself: "
              "TURNSTILE_CREDENTIAL)")
      .shown_as("FILE");
  program.flag("--insecure-credential", context.insecure_credential,
               "send the secret also over plain http to another machine");
  program
      .option("--config", context.config,
              "the settings file (Env:TURNSTILE_CONFIG, ~/.config/turnstile/turnstile.toml, "
              "/etc/turnstile/turnstile.toml)")
      .shown_as("FILE");
  program.option("--node", context.node, "the name of this node (the host's name)")
      .shown_as("NAME")
      .from_environment("TURNSTILE_NODE");
  program.option("--output", context.output, "how to print results and errors (text)");
  add_once_command(program, context);
  add_exec_command(program, context);
  add_lock_commands(program, context);
  add_look_commands(program, context);
  add_watch_command(program, context);
  add_refs_commands(program, context);
  add_top_command(program, context);
  add_bench_command(program, context);
  add_doctor_command(program, context);
  add_journal_commands(program, context);
  add_init_command(program, context);
  add_credential_command(program, context);
  add_copy_command(program, context);
  add_completion_command(program, context);
  return program;
}

std::optional<int> parse(CommandLine& program, Context& context, const std::vector<std::string>& words) {
  const std::optional<CommandLine::NoCommand> end = program.parse(without_command(words, context));
  if (!end) return std::nullopt;
  if (end->wrong) return report(context.output, end->text, "usage", kUsage);
  print_output("{}", end->text);
  return kOk;
}

int run_program(const std::vector<std::string>& words) {
  Context context;
  return exit_after_output(parse_and_run(context, words), [&](const std::string& fault) {
    (void)report(context.output, fault, "output", kUnexpected);
  });
}

}  // namespace turnstile::cli
