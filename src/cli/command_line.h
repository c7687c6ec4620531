// How commands declare themselves: the words of the command line, without the library that reads them.
//
// CLI11 is all headers, and what it does is compiled again in every file that sees it: ten seconds each. Only
// command_line.cc does (decision 0022).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace turnstile::cli {

// One option, positional argument or flag, as declared; what is said of it can be chained.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool required = true);
  Option one_of(const std::vector<std::string>& words);
  Option between(int least, int most);
  Option between(double least, double most);
  Option needs(Option other);
  Option excludes(Option other);
  Option from_environment(const std::string& variable);  // where the words do not say it
  Option shown_as(const std::string& value);             // in the help

  bool given() const;

 private:
  CLI::Option* option_;
};

// A command, or the program as a whole, on which commands are declared. A name with dashes is an option, one
// without a positional argument. Values are filled by CommandLine::parse and must live until then.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  // A command of its own, with a paragraph of examples at the end of its help.
  Command command(const std::string& name, const std::string& description, const std::string& examples);

  Option option(const std::string& name, std::string& value, const std::string& description);
  Option option(const std::string& name, int& value, const std::string& description);
  Option option(const std::string& name, uint32_t& value, const std::string& description);
  Option option(const std::string& name, uint64_t& value, const std::string& description);
  Option option(const std::string& name, double& value, const std::string& description);
  Option option(const std::string& name, Output& value, const std::string& description);
  // Several with commas.
  Option list(const std::string& name, std::vector<std::string>& values, const std::string& description);
  Option list(const std::string& name, std::vector<int>& values, const std::string& description);
  // A value that is no duration is a fault of usage.
  Option duration(const std::string& name, std::optional<Milliseconds>& value,
                  const std::string& description);
  Option flag(const std::string& name, bool& value, const std::string& description);
  void lane(Lane& lane, bool required = true);  // TYPE RESOURCE
  void takes_a_command();                       // behind "--"; parse() does not see it

  // What happens when the words are right and name this command.
  void when_given(std::function<void()> act);
  // Chooses `run`. `options` live as long as it.
  template <class Options>
  void runs(Context& context, const std::shared_ptr<Options>& options,
            int (*run)(const Context&, const Options&)) {
    when_given([&context, options, run] {
      context.run = [&context, options, run] { return run(context, *options); };
    });
  }

  // As declared so far, for a completion script.
  std::string name() const;
  std::vector<std::string> option_names() const;  // with their dashes
  std::vector<Command> commands() const;

 protected:
  CLI::App* app_;
};

// The command line of the program `turnstile`. Threads: one.
class CommandLine : public Command {
 public:
  explicit CommandLine(const std::string& version);
  CommandLine(CommandLine&&) noexcept;
  ~CommandLine();

  // Why no command is to run: help or the version was asked for (`text` is that), or the words are wrong
  // (what is wrong with them).
  struct NoCommand {
    bool wrong;
    std::string text;
  };
  std::optional<NoCommand> parse(std::vector<std::string> words);

 private:
  explicit CommandLine(std::unique_ptr<CLI::App> app);

  std::unique_ptr<CLI::App> owned_;
};

}  // namespace turnstile::cli
