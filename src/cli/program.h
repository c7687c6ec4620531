// The command line as a whole: from words to the one command that is to run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/context.h"

namespace turnstile::cli {

void add_lock_commands(Command& program, Context& context);  // lock, unlock, renew, cancel
void add_exec_command(Command& program, Context& context);
void add_once_command(Command& program, Context& context);
void add_look_commands(Command& program, Context& context);  // status, list
void add_watch_command(Command& program, Context& context);
void add_refs_commands(Command& program, Context& context);  // refs, break, forget
void add_top_command(Command& program, Context& context);
void add_bench_command(Command& program, Context& context);
void add_doctor_command(Command& program, Context& context);
void add_journal_commands(Command& program, Context& context);  // inspect, backup, restore
void add_init_command(Command& program, Context& context);
void add_credential_command(Command& program, Context& context);
void add_copy_command(Command& program, Context& context);
void add_completion_command(Command& program, Context& context);

// Every command and option, on `context`.
CommandLine make_command_line(Context& context);

// Words without the program's name. Either context.run is set and nullopt returned, or the words asked for
// help or were wrong: then all is printed and the exit code returned.
std::optional<int> parse(CommandLine& program, Context& context, const std::vector<std::string>& words);

// Parses and runs. With an output that could not be written the exit code is 1, whatever else it would be, or
// 128+SIGPIPE if its reader has gone.
int run_program(const std::vector<std::string>& words);

}  // namespace turnstile::cli
