// The command line: what is accepted, and how wrong words are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exec_session.h"
#include "cli/program.h"
#include "cli/wait_line.h"
#include "client/wall_time.h"

namespace turnstile::cli {
namespace {

using testing::HasSubstr;

struct Parsed {
  Context context;
  std::optional<int> exit;
  std::string error, out;
};

void parse_words(Parsed& parsed, const std::vector<std::string>& words) {
  CommandLine program = make_command_line(parsed.context);
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  parsed.exit = parse(program, parsed.context, words);
  parsed.out = testing::internal::GetCapturedStdout();
  parsed.error = testing::internal::GetCapturedStderr();
}

TEST(Arguments, GlobalOptionsMayStandBeforeOrBehindTheCommand) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--server", "http://a:1,http://b:2", "--node", "n", "--output", "json",
                                 "list"},
        std::vector<std::string>{"list", "--server", "http://a:1,http://b:2", "--node", "n", "--output",
                                 "json"}}) {
    Parsed parsed;
    parse_words(parsed, words);
    EXPECT_FALSE(parsed.exit) << parsed.error;
    EXPECT_EQ(parsed.context.servers, (std::vector<std::string>{"http://a:1", "http://b:2"}));
    EXPECT_EQ(parsed.context.node, "n");
    EXPECT_TRUE(parsed.context.json());
    EXPECT_TRUE(parsed.context.run);
  }
}

TEST(Arguments, EverythingBehindTheMarkIsExecsCommand) {
  Parsed parsed;
  parse_words(parsed, {"exec", "pull", "r", "--wait", "1m", "--", "sh", "--server", "--", "-c", "exit 3"});
  EXPECT_FALSE(parsed.exit) << parsed.error;
  EXPECT_EQ(parsed.context.command, (std::vector<std::string>{"sh", "--server", "--", "-c", "exit 3"}));
  EXPECT_TRUE(parsed.context.servers.empty());
}

TEST(Arguments, WrongWordsAreOneLineAndExitCode2) {
  const std::vector<std::vector<std::string>> table = {
      {},
      {"frobnicate"},
      {"lock"},
      {"lock", "pull"},
      {"lock", "pull", "r", "surplus"},
      {"lock", "pull", "r", "--wait", "soon"},
      {"lock", "pull", "r", "--scope", "world"},
      {"unlock", "pull", "r", "--token", "abc"},
      {"unlock", "pull", "r", "--permanent"},
      {"renew", "pull", "r", "--lease", "1s"},
      {"cancel", "pull", "r"},
      {"list", "--state", "happy"},
      {"list", "--limit", "-1"},
      {"refs", "r", "--add", "--release"},
      {"break", "pull", "r"},
      {"bench", "--mode", "all"},
      {"completion", "fish"},
      {"exec", "pull", "r", "--permanent-exit-codes", "0", "--", "true"},
      {"--output", "xml", "list"},
  };
  for (const auto& words : table) {
    Parsed parsed;
    parse_words(parsed, words);
    ASSERT_TRUE(parsed.exit) << (words.empty() ? "" : words.back());
    EXPECT_EQ(*parsed.exit, kUsage);
    EXPECT_THAT(parsed.error, testing::StartsWith("turnstile: "));
    EXPECT_EQ(std::count(parsed.error.begin(), parsed.error.end(), '\n'), 1) << parsed.error;
    EXPECT_EQ(parsed.out, "");
  }
}

TEST(Arguments, AWordThatIsNoCommandIsNamed) {
  Parsed parsed;
  parse_words(parsed, {"frobnicate"});
  EXPECT_THAT(parsed.error, HasSubstr("'frobnicate' is no command"));
}

TEST(Arguments, AWrongValueIsNamedInPlainWords) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"unlock", "pull", "r", "--token", "abc"}, "--token: 'abc' is not a whole number"},
      {{"list", "--limit", "-1"}, "--limit: '-1' is not a whole number"},
      {{"lock", "pull", "r", "--wait"}, "--wait needs a value"},
      {{"lock", "pull", "r", "--scope", "world"}, "--scope: must be operation or resource, not 'world'"},
      {{"bench", "--seconds", "0"}, "--seconds: must be a number from 0.1 to 3600, not '0'"},
  };
  for (const auto& [words, message] : table) {
    Parsed parsed;
    parse_words(parsed, words);
    EXPECT_THAT(parsed.error, HasSubstr(message));
  }
}

TEST(Arguments, HelpNamesTheWordsThatAnOptionTakes) {
  for (const auto& [command, words] : {std::pair{"bench", "--mode pair|handover|fanout|batch"},
                                       {"lock", "--scope operation|resource"},
                                       {"credential", "--role client|read|admin"},
                                       {"completion", "SHELL bash|zsh"}}) {
    Parsed parsed;
    parse_words(parsed, {command, "--help"});
    EXPECT_THAT(parsed.out, HasSubstr(words));
  }
}

TEST(Arguments, HelpOfEveryCommandHasExamplesAndExitCodes) {
  Context context;
  const CommandLine program = make_command_line(context);
  const std::vector<Command> commands = program.commands();
  EXPECT_GE(commands.size(), 18U);
  for (const Command& command : commands) {
    Parsed parsed;
    parse_words(parsed, {command.name(), "--help"});
    EXPECT_EQ(parsed.exit, kOk);
    EXPECT_THAT(parsed.out, HasSubstr("Examples:"));
    EXPECT_THAT(parsed.out, HasSubstr("turnstile " + command.name()));
    EXPECT_THAT(parsed.out, HasSubstr("14 no server"));
  }
}

TEST(Arguments, TheFirstHelpHasTwoExamplesThatAreNoMistakes) {
  Parsed all;
  parse_words(all, {"--help"});
  EXPECT_THAT(all.out, HasSubstr("Examples:\n  turnstile once nightly-"));
  for (const std::vector<std::string>& example :
       {std::vector<std::string>{"once", "nightly-1", "--keep", "20h", "--", "./report.sh"},
        {"list", "--state", "held"}}) {
    Parsed parsed;
    parse_words(parsed, example);
    EXPECT_EQ(parsed.error, "") << example.front();
  }
}

TEST(Arguments, HelpPromisesNoMoreThanTheCommandDoes) {
  Parsed list;
  parse_words(list, {"list", "--help"});
  EXPECT_THAT(list.out, HasSubstr("only referenced is in no list"));
  Parsed init;
  parse_words(init, {"init", "--help"});
  EXPECT_THAT(init.out, HasSubstr("a new or empty folder; with --renew, the one that init made"));
}

TEST(Exec, TheGroupIsToldAndKilledBeforeTheHoldMayBeLost) {
  using namespace std::chrono_literals;
  const Steady::time_point until(100s);
  for (const auto lease : {100ms, 10'000ms, 86'400'000ms}) {
    const Deadlines deadlines = deadlines_of(until, lease);
    EXPECT_LT(deadlines.term_at, deadlines.kill_at);
    EXPECT_LT(deadlines.kill_at, until);
  }
  EXPECT_EQ(deadlines_of(until, 10s).term_at, until - 2500ms);
  EXPECT_EQ(deadlines_of(until, 10s).kill_at, until - 500ms);
  EXPECT_EQ(deadlines_of(until, 1h).term_at, until - 10s);
  EXPECT_EQ(deadlines_of(until, 1h).kill_at, until - 1s);
}

TEST(Exec, TheWaitingLineSaysWhoHoldsSinceWhenAndHowFar) {
  const WaitingStatus status{.position = 2,
                             .holder = "node-a",
                             .holder_since = *client::parse_wall_time("2026-11-16T01:00:00Z"),
                             .done = 1,
                             .total = 4};
  EXPECT_EQ(
      waiting_text("pull x", status, *client::parse_wall_time("2026-11-16T01:03:20Z"), Milliseconds(12'000)),
      "waiting for pull x: position 2, held by node-a for 3m 20s, 25% (1 of 4); 12s");
}

}  // namespace
}  // namespace turnstile::cli
