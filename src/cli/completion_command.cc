// completion: a script for a shell, made from the commands and options as they are declared, so that it never
// falls behind.
#include <fmt/format.h>

#include "base/standard_streams.h"
#include "cli/program.h"

namespace turnstile::cli {
namespace {

struct CompletionOptions {
  std::string shell;
};

std::string flags_of(const Command& command) {
  return fmt::format("{}", fmt::join(command.option_names(), " "));
}

std::string commands_of(const Command& program) {
  std::string out;
  for (const Command& command : program.commands()) out += (out.empty() ? "" : " ") + command.name();
  return out;
}

// The words for each command, as a `case` of sh: both shells understand it.
std::string cases_of(const Command& program) {
  std::string out;
  for (const Command& command : program.commands())
    out += fmt::format("    {}) choices=\"{}\" ;;\n", command.name(), flags_of(command));
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
  Context unused;
  const CommandLine program = make_command_line(unused);
  write_output(fmt::format(fmt::runtime(options.shell == "bash" ? kBash : kZsh),
                           fmt::arg("commands", commands_of(program)), fmt::arg("cases", cases_of(program)),
                           fmt::arg("flags", flags_of(program))));
  return kOk;
}

}  // namespace

void add_completion_command(Command& program, Context& context) {
  auto options = std::make_shared<CompletionOptions>();
  Command command = program.command("completion", "Print a completion script for a shell.",
                                    "  source <(turnstile completion bash)\n");
  command.option("SHELL", options->shell, "bash or zsh").required().one_of({"bash", "zsh"});
  command.runs(context, options, completion);
}

}  // namespace turnstile::cli
