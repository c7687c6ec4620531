// What every command shares: the global options, the way to a client, and the helpers with which commands
// declare themselves.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/format.h"
#include "turnstile/lock_client.h"

namespace turnstile::cli {

// Parsing fills it and chooses `run`; nothing is done before all of the command line is known to be right.
// Threads: one.
struct Context {
  std::vector<std::string> servers = {"http://127.0.0.1:8086"};
  std::string token_file, node;
  Output output = Output::text;
  std::vector<std::string> command;  // exec: what stands behind "--"
  std::function<int()> run;

  bool json() const { return output == Output::json; }
  // `retries`: how stubbornly a server that does not answer is asked again.
  Expected<ClientSettings> settings(int retries) const;
  Expected<LockClient> client(int retries = kFewRetries) const;

  int fail(const ClientError& error) const { return report(output, error); }

  static constexpr int kFewRetries = 2;   // a person waits for the answer
  static constexpr int kManyRetries = 5;  // somebody's work hangs on it
};

struct Lane {
  std::string type, resource;
};

void add_lane(CLI::App& command, Lane& lane, bool required = true);
// --NAME DURATION; a value that is none is a fault of usage.
void add_duration(CLI::App& command, const std::string& name, std::optional<Milliseconds>& value,
                  const std::string& description);
// A command with a paragraph of examples at the end of its help.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& examples);
// Chooses `run` when the command was given. `options` live as long as it.
template <class Options>
void runs(CLI::App* command, Context& context, std::shared_ptr<Options> options,
          int (*run)(const Context&, const Options&)) {
  command->callback([&context, options, run] {
    context.run = [&context, options, run] { return run(context, *options); };
  });
}

}  // namespace turnstile::cli
