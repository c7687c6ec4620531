#include "server/settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "server/replication.h"

namespace turnstile {
namespace {

using Variables = std::map<std::string, std::string>;

Result<CommandLine> read(std::vector<const char*> arguments, const Variables& variables = {}) {
  arguments.insert(arguments.begin(), "turnstiled");
  return read_command_line(int(arguments.size()), arguments.data(),
                           [&](const std::string& name) -> std::optional<std::string> {
                             const auto found = variables.find(name);
                             if (found == variables.end()) return std::nullopt;
                             return found->second;
                           });
}

Settings run(std::vector<const char*> arguments, const Variables& variables = {}) {
  Result<CommandLine> line = read(std::move(arguments), variables);
  EXPECT_TRUE(line.has_value()) << (line ? "" : line.error().message);
  return line && line->run ? *line->run : Settings();
}

std::string error_of(std::vector<const char*> arguments, const Variables& variables = {}) {
  const Result<CommandLine> line = read(std::move(arguments), variables);
  return line ? "" : line.error().message;
}

std::string write_file(const std::string& text) {
  // Tests of this program run beside each other.
  const std::string path = testing::TempDir() + fmt::format("turnstile_settings_test.{}.toml", getpid());
  std::ofstream(path) << text;
  return path;
}

TEST(Settings, AreTheDocumentedDefaultsWithoutAnything) {
  const Settings settings = run({});
  EXPECT_EQ(settings.listen, std::vector<std::string>{"127.0.0.1:8086"});
  EXPECT_EQ(settings.store, "file:./turnstile-data");
  EXPECT_EQ(settings.engine.operations.size(), 4u);
  EXPECT_EQ(settings.engine.retain_completed, std::chrono::minutes(5));
}

TEST(Settings, FlagsComeBeforeEnvironmentBeforeFile) {
  const std::string file = write_file("claim-timeout = \"1s\"\nbond_grace = \"1s\"\nmax-hold = \"1s\"\n");
  const Settings settings = run({"--config", file.c_str(), "--claim-timeout", "3s"},
                                {{"TURNSTILE_CLAIM_TIMEOUT", "2s"}, {"TURNSTILE_BOND_GRACE", "2s"}});
  EXPECT_EQ(settings.engine.claim_timeout, std::chrono::seconds(3));
  EXPECT_EQ(settings.engine.bond_grace, std::chrono::seconds(2));
  EXPECT_EQ(settings.engine.max_hold, std::chrono::seconds(1));
}

TEST(Settings, WhoeverStartsItIsToldWhatInTheFileDoesNotCount) {
  const std::string path = write_file("store = \"memory\"\nlog-level = \"error\"\nthreads = 3\n");
  const Result<CommandLine> line = read(
      {"--config", path.c_str()},
      {{"TURNSTILE_STORE", "file:/elsewhere"}, {"TURNSTILE_LOG_LEVEL", "error"}, {"TURNSTILE_SHARDS", "8"}});
  ASSERT_TRUE(line) << line.error().message;
  ASSERT_EQ(line->notices.size(), 1u);
  EXPECT_EQ(line->notices[0], "TURNSTILE_STORE in the environment wins over 'store' in " + path);
}

TEST(Settings, AMistypedVariableIsToldAndNoneOfAnotherProgram) {
  const std::array<const char*, 14> others = {"PATH=/bin",
                                              "TURNSTILE_MAX_QUEUE=5",
                                              "TURNSTILE_CONFIG=x",
                                              "TURNSTILE_SERVER=http://a",
                                              "TURNSTILE_CREDENTIAL_FILE=c",
                                              "TURNSTILE_CONTENT_NODE=a",
                                              "TURNSTILE_TOKEN=7",
                                              "TURNSTILE_OPERATION=once",
                                              "TURNSTILE_SERVICE_HOST=10.0.0.1",
                                              "TURNSTILE_PORT_8086_TCP_ADDR=10.0.0.1",
                                              "TURNSTILE_PORT=tcp://10.0.0.1:8086",
                                              "TURNSTILED_ETCD_PASSWORD=x",
                                              "TURNSTILE_EMPTY=",
                                              nullptr};
  EXPECT_TRUE(unknown_variables(others.data()).empty());
  const std::array<const char*, 4> mistyped = {"TURNSTILE_MAX_QEUE=5", "TURNSTILE_STORE=memory",
                                               "TURNSTILE_FREQUENCY=9", nullptr};
  EXPECT_EQ(unknown_variables(mistyped.data()),
            std::vector<std::string>{
                "nothing reads these variables of the environment: TURNSTILE_MAX_QEUE (did you mean "
                "TURNSTILE_MAX_QUEUE?), TURNSTILE_FREQUENCY"});
}

TEST(Settings, AMistypedFlagIsToldWithTheOneThatWasMeant) {
  EXPECT_EQ(error_of({"--retain-complete", "5m"}),
            "there is no option --retain-complete; did you mean --retain-completed?; see turnstiled --help");
  EXPECT_EQ(error_of({"memory"}),
            "'memory' is not expected here: every setting has a name; see turnstiled --help");
  EXPECT_EQ(error_of({"--listen", "8086"}),
            "--listen 8086: that is not an address; give HOST:PORT, for example 127.0.0.1:8086");
}

TEST(Settings, ARequestOfTheLargestBodyFitsWhatAThreadTakes) {
  EXPECT_EQ(run({}).http.max_loop_input, 64u << 20);
  const http::Limits limits = run({"--max-body", "200000000"}).http;
  EXPECT_GE(limits.max_loop_input, limits.max_head + limits.max_body);
}

TEST(Settings, TheSeedsEnvironmentWorks) {
  const Settings settings =
      run({}, {{"PORT", "9000"}, {"ALLOW_MULTI_NODE_DOWNLOAD", "false"}, {"UPDATE_REQUIRES_NO_REF", "true"}});
  EXPECT_EQ(settings.listen, std::vector<std::string>{"127.0.0.1:9000"});
  EXPECT_FALSE(settings.engine.allow_multi_node_download);
  EXPECT_EQ(settings.engine.operations[1].guard, Guard::refuse);
}

TEST(Settings, ListenMayBeRepeatedEverywhere) {
  const std::vector<std::string> two{"127.0.0.1:1", "unix:/tmp/x"};
  EXPECT_EQ(run({"--listen", "127.0.0.1:1", "--listen", "unix:/tmp/x"}).listen, two);
  EXPECT_EQ(run({}, {{"TURNSTILE_LISTEN", "127.0.0.1:1;unix:/tmp/x"}}).listen, two);
  const std::string file = write_file("listen = [\"127.0.0.1:1\", \"unix:/tmp/x\"]\n");
  EXPECT_EQ(run({"--config", file.c_str()}).listen, two);
}

TEST(Settings, AnOperationReplacesItsRowAndLeavesTheOthers) {
  const Settings settings =
      run({"--operation", "update:on_success=share,voids=true", "--operation", "build:guard=skip"});
  ASSERT_EQ(settings.engine.operations.size(), 5u);
  EXPECT_EQ(settings.engine.operations[3].name, "update");
  EXPECT_EQ(settings.engine.operations[3].on_success, OnSuccess::share);
  EXPECT_EQ(settings.engine.operations[4].guard, Guard::skip);
}

TEST(Settings, WrongOnesAreOneClearLine) {
  EXPECT_NE(error_of({"--store", "nowhere"}).find("--store: 'nowhere' is no store"), std::string::npos);
  EXPECT_NE(error_of({"--claim-timeout", "5"}).find("'5' is not a duration"), std::string::npos);
  EXPECT_NE(error_of({"--no-such-flag"}).find("--help"), std::string::npos);
  EXPECT_NE(error_of({"--threads", "-1"}).find("whole number"), std::string::npos);
  EXPECT_NE(error_of({"--listen", "0.0.0.0:80"}).find("--insecure"), std::string::npos);
  EXPECT_NE(error_of({"--tls-cert", "a.crt"}).find("--tls-key"), std::string::npos);
  EXPECT_NE(error_of({"--tls-client-ca", "ca.crt"}).find("--tls-cert"), std::string::npos);
  EXPECT_NE(error_of({"--listen", "https://0.0.0.0:80"}).find("--insecure"), std::string::npos);
  EXPECT_NE(error_of({"--operation", "x:on_success=maybe"}).find("is no rule"), std::string::npos);
  EXPECT_NE(error_of({"--config", "/does/not/exist"}).find("/does/not/exist"), std::string::npos);
  EXPECT_NE(error_of({"--config", "/dev/null/x"}).find("/dev/null/x: Not a directory"), std::string::npos);
  EXPECT_NE(error_of({"--config", "/dev"}).find("/dev: that is not a plain file"), std::string::npos);
  const std::string file = write_file("clame-timeout = \"1s\"\n");
  EXPECT_NE(error_of({"--config", file.c_str()}).find("no setting 'clame-timeout'"), std::string::npos);
  for (const std::string& error :
       {error_of({"--store", "x"}), error_of({"--nope"}), error_of({"--config", "/x"})})
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
}

TEST(Settings, OffTheLoopbackNeedsInsecure) {
  EXPECT_EQ(run({"--insecure", "--listen", "0.0.0.0:80"}).listen, std::vector<std::string>{"0.0.0.0:80"});
  EXPECT_EQ(run({"--listen", "[::1]:80"}).listen, std::vector<std::string>{"[::1]:80"});
}

TEST(Settings, OneOfSeveralServersThatListensEverywhereSaysHowItIsReached) {
  for (const char* everywhere : {"0.0.0.0:80", "[::]:80", "*:80", ":80", "https://:80"})
    EXPECT_NE(
        error_of({"--insecure", "--store", "etcd://a:2379/p", "--listen", everywhere}).find("--advertise"),
        std::string::npos)
        << everywhere;
  EXPECT_TRUE(
      read({"--insecure", "--store", "etcd://a:2379/p", "--listen", ":80", "--advertise", "http://b:80"}));
  EXPECT_TRUE(read({"--insecure", "--listen", ":80"})) << "one server alone sends nobody elsewhere";
}

TEST(Settings, WhatIsAdvertisedIsAUrlWithAHostAndNoMore) {
  const auto with = [](const char* url) {
    return read({"--store", "etcd://a:2379/p", "--listen", "127.0.0.1:80", "--advertise", url});
  };
  for (const char* good :
       {"http://b:80", "https://b", "http://10.0.0.1:8086", "http://[::1]:80", "https://[fe80::1]"})
    EXPECT_TRUE(with(good)) << good;
  EXPECT_EQ(with("http://b:80/")->run->replication.advertise, "http://b:80");
  for (const char* wrong : {"b:80", "ftp://b", "http://", "http:///", "http://b/turnstile", "http://b?x",
                            "http://u@b", "http://0.0.0.0:80", "http://[::]:80", "http://:80", "http://b:",
                            "http://b:0", "http://b:70000", "http://b:x", "http://[::1", "http://b c"}) {
    const auto done = with(wrong);
    ASSERT_FALSE(done) << wrong;
    EXPECT_NE(done.error().message.find("--advertise"), std::string::npos) << done.error().message;
  }
}

TEST(Settings, OneOfSeveralServersOnAUnixSocketSaysHowItIsReached) {
  EXPECT_NE(error_of({"--store", "etcd://a:2379/p", "--listen", "unix:/tmp/s"}).find("--advertise"),
            std::string::npos);
  EXPECT_TRUE(read({"--store", "etcd://a:2379/p", "--listen", "unix:/tmp/s", "--advertise", "http://b:80"}));
  EXPECT_TRUE(read({"--listen", "unix:/tmp/s"}));
}

TEST(Settings, HelpNamesEverySetting) {
  const Result<CommandLine> help = read({"--help"});
  ASSERT_TRUE(help && !help->run);
  for (const SettingRow& row : setting_rows())
    EXPECT_NE(help->print.find("--" + row.name), std::string::npos);
}

TEST(EtcdStore, IsMembersAndAPrefix) {
  ReplicationSettings settings;
  ASSERT_TRUE(parse_etcd_store(settings, "etcd://a:2379,[::1]:2380/one/two/"));
  EXPECT_EQ(settings.endpoints, (std::vector<std::string>{"http://a:2379", "http://[::1]:2380"}));
  EXPECT_EQ(settings.prefix, "/one/two");
  ASSERT_TRUE(parse_etcd_store(settings, "etcds://a:2379/p"));
  EXPECT_EQ(settings.endpoints, (std::vector<std::string>{"https://a:2379"}));
  for (const char* wrong : {"etcd://a:2379", "etcd://a:2379/", "etcd://a/p", "etcd://a:0/p", "etcd://a:x/p",
                            "etcd://a:2379,/p", "etcd:///p", "etcd://a:70000/p"})
    EXPECT_FALSE(parse_etcd_store(settings, wrong)) << wrong;
}

TEST(EtcdVersion, OlderThanWhatWasTriedIsRefusedAndSilenceIsNoAnswer) {
  const auto fits = [](const char* version) {
    etcd::MemberStatus member;
    member.url = "http://m:2379";
    member.version = version;
    return check_etcd_version({member}).has_value();
  };
  for (const char* good : {"3.4.0", "3.4.23", "3.5.1", "3.10.0", "4.0.0", ""})
    EXPECT_TRUE(fits(good)) << good;
  for (const char* old : {"3.3.27", "2.3.8"}) EXPECT_FALSE(fits(old)) << old;
}

}  // namespace
}  // namespace turnstile
