// completion: a script for a shell, made from the commands and options as they are declared, so that it never
// falls behind.
#include <fmt/format.h>

#include "cli/program.h"

namespace turnstile::cli {
namespace {

struct CompletionOptions {
  std::string shell;
};

std::string flags_of(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out += (out.empty() ? "--" : " --") + name;
  }
  return out;
}

std::string commands_of(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : app.get_subcommands({}))
    out += (out.empty() ? "" : " ") + command->get_name();
  return out;
}

// The words for each command, as a `case` of sh: both shells understand it.
std::string cases_of(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : app.get_subcommands({})) {
    out += fmt::format("    {}) choices=\"{}\" ;;\n", command->get_name(), flags_of(*command));
  }
  return out;
}

constexpr std::string_view kBash = R"(# bash completion of turnstile: source <(turnstile completion bash)
_turnstile() {{
  local word choices command=""
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -- ]] && {{ COMPREPLY=($(compgen -c -- "${{COMP_WORDS[COMP_CWORD]}}")); return; }}
    [[ -z $command && " {commands} " == *" $word "* ]] && command=$word
  done
  case "$command" in
{cases}    *) choices="{commands}" ;;
  esac
  [[ ${{COMP_WORDS[COMP_CWORD]}} == -* ]] && choices+=" {flags}"
  COMPREPLY=($(compgen -W "$choices" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _turnstile turnstile
)";

constexpr std::string_view kZsh = R"(#compdef turnstile
# zsh completion of turnstile: source <(turnstile completion zsh)
_turnstile() {{
  local word choices command=""
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    [[ -z $command && " {commands} " == *" $word "* ]] && command=$word
  done
  case "$command" in
{cases}    *) choices="{commands}" ;;
  esac
  [[ $PREFIX == -* ]] && choices+=" {flags}"
  compadd -- ${{=choices}}
}}
compdef _turnstile turnstile
)";

int completion(const Context&, const CompletionOptions& options) {
  CLI::App app;
  Context unused;
  add_everything(app, unused);
  fmt::print(fmt::runtime(options.shell == "bash" ? kBash : kZsh), fmt::arg("commands", commands_of(app)),
             fmt::arg("cases", cases_of(app)), fmt::arg("flags", flags_of(app)));
  return kOk;
}

}  // namespace

void add_completion_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<CompletionOptions>();
  CLI::App* command = add_command(app, "completion", "Print a completion script for a shell.",
                                  "  source <(turnstile completion bash)\n");
  command->add_option("SHELL", options->shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  runs(command, context, options, completion);
}

}  // namespace turnstile::cli
