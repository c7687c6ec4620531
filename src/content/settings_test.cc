// Flags, environment, file: which wins, and what a mistake is told.
#include "content/settings.h"

#include "content/test_directory.h"

namespace turnstile::content {
namespace {

Result<CommandLine> read(std::vector<const char*> flags,
                         std::map<std::string, std::string> environment = {}) {
  flags.insert(flags.begin(), "turnstile-content");
  return read_command_line(int(flags.size()), flags.data(),
                           [&](const std::string& name) -> std::optional<std::string> {
                             const auto found = environment.find(name);
                             if (found == environment.end()) return std::nullopt;
                             return found->second;
                           });
}

const std::vector<const char*> kNeeded = {"--socket", "/run/s", "--node",  "n",
                                          "--root",   "/r",     "--state", "/s"};

std::vector<const char*> with(std::vector<const char*> more) {
  more.insert(more.begin(), kNeeded.begin(), kNeeded.end());
  return more;
}

TEST(Settings, ComeFromFlags) {
  const Result<CommandLine> line =
      read(with({"--server", "http://a,http://b", "--read-root", "/x", "--read-root", "/y",
                 "--without-server", "pull", "--log-level", "error", "--visible-within", "3s",
                 "--stalled-after", "5m", "--metrics-listen", "127.0.0.1:0"}));
  ASSERT_TRUE(line && line->run) << line.error().message;
  EXPECT_EQ(line->run->servers, (std::vector<std::string>{"http://a", "http://b"}));
  EXPECT_EQ(line->run->read_roots, (std::vector<std::string>{"/x", "/y"}));
  EXPECT_EQ(line->run->without_server, WithoutServer::pull);
  EXPECT_EQ(line->run->log_level, LogLevel::error);
  EXPECT_EQ(line->run->visible_within, std::chrono::seconds(3));
  EXPECT_EQ(line->run->stalled_after, std::chrono::minutes(5));
  EXPECT_EQ(line->run->metrics_listen, "127.0.0.1:0");
}

TEST(Settings, TheWayToTheServerIsAlsoWhatTheCommandLineReads) {
  const Result<CommandLine> line = read(with({"--cert", "/cert", "--key", "/key", "--insecure-credential"}),
                                        {{"TURNSTILE_SERVER", "https://a,https://b"},
                                         {"TURNSTILE_CA", "/theirs"},
                                         {"TURNSTILE_CONTENT_CA", "/ours"},
                                         {"TURNSTILE_NODE", "not of the way"},
                                         {"TURNSTILE_CREDENTIAL", "ts_one"}});
  ASSERT_TRUE(line && line->run) << line.error().message;
  EXPECT_EQ(line->run->servers, (std::vector<std::string>{"https://a", "https://b"}));
  EXPECT_EQ(line->run->ca, "/ours");
  EXPECT_EQ(line->run->cert, "/cert");
  EXPECT_EQ(line->run->key, "/key");
  EXPECT_EQ(line->run->node, "n");
  EXPECT_EQ(line->run->credential, "ts_one");
  EXPECT_TRUE(line->run->insecure_credential);
  const Result<CommandLine> file =
      read(with({"--credential-file", "/file"}), {{"TURNSTILE_CREDENTIAL", "ts_one"}});
  ASSERT_TRUE(file && file->run);
  EXPECT_EQ(file->run->credential_file, "/file");
  EXPECT_EQ(file->run->credential, "") << "one of both";
}

TEST(Settings, AFlagBeatsTheEnvironmentWhichBeatsTheFile) {
  const TestDirectory directory;
  const std::string file = directory / "c.toml";
  put_file(file, "node = 'file'\nroot = 'file'\nread_root = ['/a', '/b']\nstate = 'file'\nsocket = 'file'\n");
  const Result<CommandLine> line =
      read({"--config", file.c_str(), "--node", "flag"},
           {{"TURNSTILE_CONTENT_NODE", "environment"}, {"TURNSTILE_CONTENT_ROOT", "environment"}});
  ASSERT_TRUE(line && line->run) << line.error().message;
  EXPECT_EQ(line->run->node, "flag");
  EXPECT_EQ(line->run->root, "environment");
  EXPECT_EQ(line->run->socket, "file");
  EXPECT_EQ(line->run->read_roots.size(), 2u);
}

TEST(Settings, TheEnvironmentMayNameTheFileAndANoticeSaysWhereItWinsOverIt) {
  const TestDirectory directory;
  const std::string file = directory / "c.toml";
  put_file(
      file,
      "node = 'file'\nroot = '/r'\nstate = '/s'\nsocket = '/run/s'\nserver = ['http://a', 'http://b']\n");
  const Result<CommandLine> line = read({"--state", "/flag"}, {{"TURNSTILE_CONTENT_CONFIG", file},
                                                               {"TURNSTILE_CONTENT_NODE", "environment"},
                                                               {"TURNSTILE_CONTENT_ROOT", "/r"},
                                                               {"TURNSTILE_SERVER", "http://a,http://b"}});
  ASSERT_TRUE(line && line->run) << line.error().message;
  EXPECT_EQ(line->run->socket, "/run/s");
  EXPECT_EQ(
      line->notices,
      (std::vector<std::string>{"TURNSTILE_CONTENT_NODE in the environment wins over 'node' in " + file}))
      << "the others say the same, and a flag is seen by who types it";
  EXPECT_TRUE(read(with({}), {{"TURNSTILE_CONTENT_NODE", "other"}}).value().notices.empty());
}

TEST(Settings, AMistakeIsOneLine) {
  const TestDirectory directory;
  const std::string file = directory / "c.toml";
  put_file(file, "colour = 'red'\n");
  for (const std::vector<const char*>& flags : {std::vector<const char*>{},
                                                {"--node", "n"},
                                                with({"--nonsense"}),
                                                with({"--without-server", "maybe"}),
                                                with({"--log-level", "loud"}),
                                                with({"--visible-within", "3"}),
                                                with({"--metrics-listen", "0.0.0.0:1"}),
                                                with({"--node", "../x"}),
                                                with({"--config", "/nowhere"}),
                                                with({"--config", file.c_str()})}) {
    const Result<CommandLine> line = read(flags);
    ASSERT_FALSE(line);
    EXPECT_EQ(line.error().message.find('\n'), std::string::npos) << line.error().message;
  }
}

TEST(Settings, MetricsOffTheLoopbackNeedInsecure) {
  const TestDirectory directory;
  const std::string file = directory / "c.toml";
  put_file(file, "metrics_listen = '0.0.0.0:1'\ninsecure = true\n");
  EXPECT_TRUE(read(with({})).value().run->metrics_listen.empty()) << "off unless asked for";
  EXPECT_NE(read(with({"--metrics-listen", "0.0.0.0:1"})).error().message.find("--insecure"),
            std::string::npos);
  EXPECT_TRUE(read(with({"--metrics-listen", "0.0.0.0:1", "--insecure"})));
  EXPECT_TRUE(read(with({"--config", file.c_str()})));
  EXPECT_TRUE(read(with({"--metrics-listen", "[::1]:1"})));
  EXPECT_TRUE(read(with({"--metrics-listen", "0.0.0.0:1"}), {{"TURNSTILE_CONTENT_INSECURE", "true"}}));
}

TEST(Settings, ReferencesOfTheClientsNeedAServerAndAPlaceThatAllShare) {
  EXPECT_EQ(read(with({})).value().run->references, ReferencesBy::server);
  const std::vector<const char*> counted = with({"--server", "http://a", "--references", "client"});
  const auto and_more = [&](std::vector<const char*> more) {
    more.insert(more.begin(), counted.begin(), counted.end());
    return read(more);
  };
  EXPECT_EQ(and_more({}).value().run->references, ReferencesBy::client);
  EXPECT_NE(and_more({"--read-root", "/x"}).error().message.find("--references-dir"), std::string::npos);
  EXPECT_EQ(and_more({"--read-root", "/x", "--references-dir", "/x/r"}).value().run->references_dir, "/x/r");
  EXPECT_NE(read(with({"--references", "client"})).error().message.find("--server"), std::string::npos);
  EXPECT_FALSE(read(with({"--references-dir", "/r"}))) << "without --references client it would do nothing";
}

TEST(Settings, ACommandHasItsOwnFlagsAndNeedsNoSocket) {
  const Result<CommandLine> verify = read({"verify", "--node", "n", "--root", "/r", "--state", "/s",
                                           "--sample", "5%", "--rate", "50M", "--put-away"});
  ASSERT_TRUE(verify && verify->run) << verify.error().message;
  EXPECT_EQ(verify->run->command, Command::verify);
  EXPECT_EQ(verify->run->of_command.percentage, 5.0);
  EXPECT_EQ(verify->run->of_command.rate, 50 << 20);
  EXPECT_TRUE(verify->run->of_command.put_away);
  const Result<CommandLine> import =
      read({"import", "--node", "n", "--root", "/r", "--state", "/s", "--from", "/c"});
  ASSERT_TRUE(import && import->run) << import.error().message;
  EXPECT_EQ(import->run->of_command.from, "/c");
  EXPECT_EQ(read(with({"--verify-every", "1d"})).value().run->verify_every, std::chrono::hours(24));
  for (const std::vector<const char*>& wrong :
       {std::vector<const char*>{"import", "--node", "n", "--root", "/r", "--state", "/s"},
        {"export-store", "--node", "n", "--root", "/r", "--state", "/s", "--from", "/c"},
        {"verify", "--node", "n", "--root", "/r", "--state", "/s", "--sample", "101%"},
        {"verify", "--node", "n", "--root", "/r", "--state", "/s", "--sample", "few"},
        {"verify", "--root", "/r", "--state", "/s"},
        with({"--rate", "1"}),
        {"mend"}})
    EXPECT_FALSE(read(wrong)) << wrong.back();
}

TEST(Settings, HelpNamesEveryFlag) {
  const Result<CommandLine> line = read({"--help"});
  ASSERT_TRUE(line && !line->run);
  for (const char* flag : {"--socket",
                           "--server",
                           "--node",
                           "--root",
                           "--read-root",
                           "--state",
                           "--config",
                           "--without-server",
                           "--visible-within",
                           "--references",
                           "--references-dir",
                           "--metrics-listen",
                           "--insecure",
                           "--log-level",
                           "--verify-every",
                           "verify",
                           "--sample",
                           "--rate",
                           "--put-away",
                           "import",
                           "--from",
                           "export-store",
                           "--to"})
    EXPECT_NE(line->print.find(flag), std::string::npos) << flag;
}

TEST(Settings, AWordThatNobodyKnowsIsNamedWithTheOneThatMayBeMeant) {
  EXPECT_EQ(read({"--rot", "/r"}).error().message,
            "there is no option --rot; did you mean --root?; see turnstile-content --help");
  EXPECT_EQ(read({"verfy"}).error().message,
            "'verfy' is not a command; did you mean verify?; see turnstile-content --help");
  EXPECT_EQ(read(with({"--sample", "5%"})).error().message,
            "--sample is an option of verify; see turnstile-content --help");
  EXPECT_EQ(read(with({"--without-server", "hope"})).error().message,
            "--without-server: 'hope' is none of pull|wait");
}

}  // namespace
}  // namespace turnstile::content
