// The command line as a whole: from words to the one command that is to run.
#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace turnstile::cli {

void add_lock_commands(CLI::App& app, Context& context);  // lock, unlock, renew, cancel
void add_exec_command(CLI::App& app, Context& context);
void add_look_commands(CLI::App& app, Context& context);  // status, list
void add_watch_command(CLI::App& app, Context& context);
void add_refs_commands(CLI::App& app, Context& context);  // refs, break
void add_top_command(CLI::App& app, Context& context);
void add_bench_command(CLI::App& app, Context& context);
void add_completion_command(CLI::App& app, Context& context);

// Every command and option, on `context`.
void add_everything(CLI::App& app, Context& context);

// Words without the program's name. Either context.run is set and nullopt returned, or the words asked for
// help or were wrong: then all is printed and the exit code returned.
std::optional<int> parse(CLI::App& app, Context& context, const std::vector<std::string>& words);

// Parses and runs.
int run_program(const std::vector<std::string>& words);

}  // namespace turnstile::cli
