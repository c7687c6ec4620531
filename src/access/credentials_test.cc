#include "access/credentials.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "access/secret.h"

namespace turnstile::access {
namespace {

constexpr std::string_view kSecret = "ts_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

std::string hex_of(std::string_view secret) {
  std::string hex;
  for (const uint8_t byte : digest_of(secret)) hex += fmt::format("{:02x}", byte);
  return hex;
}

Result<CredentialsPtr> parse(const std::string& text) {
  return Credentials::parse(text, "creds.toml", [](const std::string& name) -> std::optional<uint32_t> {
    if (name == "root") return 0;
    if (name == "turn") return 1234;
    return std::nullopt;
  });
}

std::string error_of(const std::string& text) {
  const Result<CredentialsPtr> parsed = parse(text);
  return parsed ? "no error" : parsed.error().message;
}

std::string entry(std::string_view more = "", std::string_view name = "node-a",
                  std::string_view secret = kSecret) {
  return fmt::format("[[credential]]\nname = \"{}\"\nsecret_sha256 = \"{}\"\n{}\n", name, hex_of(secret),
                     more);
}

TEST(Credentials, FindASecretByWhatWasSentAndNothingElse) {
  const auto known =
      parse(entry("role = \"client\"\nnodes = [\"node-a\", \"ci-*\"]\nresources = [\"sha256:\"]") +
            entry("role = \"admin\"", "boss", "ts_boss"));
  ASSERT_TRUE(known) << known.error().message;
  const PrincipalPtr who = (*known)->find_secret(kSecret);
  ASSERT_NE(who, nullptr);
  EXPECT_EQ(who->name, "node-a");
  EXPECT_EQ(who->role, Role::client);
  EXPECT_TRUE(who->speaks_for(NodeId("ci-3")));
  EXPECT_FALSE(who->touches(ResourceId("build/1")));
  EXPECT_EQ((*known)->find_secret("ts_boss")->role, Role::admin);
  EXPECT_EQ((*known)->find_secret(""), nullptr);
  EXPECT_EQ((*known)->find_secret(hex_of(kSecret)), nullptr);  // the digest is not the secret
  EXPECT_EQ((*known)->find_secret(std::string(kSecret) + "A"), nullptr);
}

TEST(Credentials, AClientSpeaksForItsOwnNameUnlessTold) {
  const auto known = parse(entry("role = \"client\""));
  ASSERT_TRUE(known) << known.error().message;
  const PrincipalPtr who = (*known)->find_secret(kSecret);
  EXPECT_TRUE(who->speaks_for(NodeId("node-a")));
  EXPECT_FALSE(who->speaks_for(NodeId("node-b")));
  EXPECT_TRUE(who->touches(ResourceId("anything")));
}

TEST(Credentials, ACertificateIsTheFirstPatternThatItsNameMatches) {
  const auto known = parse(
      "[[certificate]]\nname = \"node-boss\"\nrole = \"admin\"\n"
      "[[certificate]]\nname = \"node-*\"\nrole = \"client\"\nresources = [\"sha256:\"]\n");
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ((*known)->find_certificate("node-boss")->role, Role::admin);
  const PrincipalPtr node = (*known)->find_certificate("node-7");
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->name, "node-7");
  EXPECT_TRUE(node->speaks_for(NodeId("node-7")));
  EXPECT_FALSE(node->speaks_for(NodeId("node-8")));
  EXPECT_EQ((*known)->find_certificate("other"), nullptr);
  EXPECT_EQ((*known)->find_certificate(""), nullptr);
}

TEST(Credentials, WithoutAFileACertificateIsAClientOfItsOwnName) {
  const PrincipalPtr who = Credentials::of_certificates()->find_certificate("node-1");
  EXPECT_EQ(who->role, Role::client);
  EXPECT_TRUE(who->speaks_for(NodeId("node-1")));
  EXPECT_FALSE(who->speaks_for(NodeId("node-2")));
  EXPECT_EQ(Credentials::of_certificates()->find_secret(kSecret), nullptr);
}

TEST(Credentials, WhoMayOpenTheSocketIsAnAdminUnlessUsersAreNamed) {
  const auto open = parse(entry("role = \"read\""));
  EXPECT_EQ((*open)->find_user(77)->role, Role::admin);
  const auto named = parse(entry("role = \"read\"") +
                           "[[unix_user]]\nuser = \"root\"\nrole = \"admin\"\n"
                           "[[unix_user]]\nuser = \"turn\"\nrole = \"client\"\n");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ((*named)->find_user(0)->role, Role::admin);
  EXPECT_TRUE((*named)->find_user(1234)->speaks_for(NodeId("turn")));
  EXPECT_EQ((*named)->find_user(77), nullptr);
}

TEST(Credentials, AreFoundAgainInAnotherReading) {
  const auto before = parse(entry("role = \"client\""));
  const auto same = parse(entry("role = \"admin\"", "b", "ts_other") + entry("role = \"client\""));
  const auto narrower = parse(entry("role = \"client\"\nresources = [\"x/\"]"));
  const auto without = parse(entry("role = \"admin\"", "b", "ts_other"));
  const Principal& who = *(*before)->find_secret(kSecret);
  EXPECT_EQ(*(*same)->find(who.proof), who);
  EXPECT_NE(*(*narrower)->find(who.proof), who);
  EXPECT_EQ((*without)->find(who.proof), nullptr);
}

TEST(Credentials, AFaultIsToldWithItsLineAndReason) {
  EXPECT_EQ(error_of(entry("role = \"boss\"")),
            "creds.toml:4: 'boss' is no role; write client, read or admin");
  EXPECT_EQ(error_of(entry("role = \"client\"\nroel = 1")),
            "creds.toml:5: 'roel' is unknown here; there are name, secret_sha256, role, nodes, resources");
  EXPECT_EQ(error_of("[[credential]]\nname = \"a\"\n"), "creds.toml:1: 'role' is missing");
  EXPECT_EQ(error_of("\n[server]\nx = 1\n"),
            "creds.toml:2: 'server' is unknown here; write [[credential]], [[certificate]] or [[unix_user]]");
  EXPECT_EQ(error_of("[credential]\nname = \"a\"\n"),
            "creds.toml:1: write [[credential]], with two brackets, before each");
  EXPECT_NE(error_of(entry("role = \"client\"\nnodes = []")).find("creds.toml:5: 'nodes' must be a list"),
            std::string::npos);
  EXPECT_NE(error_of(entry("role = \"client\"\nnodes = [1]")).find("creds.toml:5:"), std::string::npos);
  EXPECT_NE(error_of(entry("role = \"read\"\nnodes = [\"a\"]")).find("only a client speaks for nodes"),
            std::string::npos);
  EXPECT_NE(error_of(entry("role = \"admin\"\nresources = [\"a\"]")).find("an admin may touch every"),
            std::string::npos);
  EXPECT_NE(
      error_of(entry("role = \"admin\"") + entry("role = \"read\"", "b")).find("'node-a' has this secret"),
      std::string::npos);
  EXPECT_EQ(error_of("[[unix_user]]\nuser = \"nobody-here\"\nrole = \"admin\"\n"),
            "creds.toml:2: there is no user 'nobody-here' on this machine");
  EXPECT_NE(error_of("[[credential\n").find("creds.toml:1:"), std::string::npos);
  EXPECT_NE(error_of("").find("it names nobody"), std::string::npos);
  EXPECT_NE(error_of("credential = []\n").find("creds.toml:1: write [[credential]]"), std::string::npos);
}

TEST(Credentials, AFaultIsOneLineWhateverStandsInTheFile) {
  EXPECT_EQ(error_of("[[certificate]]\n\"na\\nme\" = \"a\"\n").find_first_of("\n\r"), std::string::npos);
  EXPECT_TRUE(error_of(entry("role = \"cli\\r\\nent\\u001b\"")).contains("'cli??ent?' is no role"));
}

TEST(Credentials, ASecretThatWasWrittenDownByMistakeIsNotRepeated) {
  const std::string error = error_of(
      fmt::format("[[credential]]\nname = \"a\"\nrole = \"read\"\nsecret_sha256 = \"{}\"\n", kSecret));
  EXPECT_EQ(error, "creds.toml:4: 'secret_sha256' must be 64 hexadecimal digits");
}

TEST(Credentials, AFileThatIsNotThereIsAnError) {
  EXPECT_EQ(Credentials::read("/nowhere/creds.toml").error().message,
            "/nowhere/creds.toml: it cannot be read; it must be a file that this server may open");
}

// A mount makes a directory of what is missing; SIGHUP must not end the server for it.
TEST(Credentials, S56_ADirectoryInTheirPlaceIsAnErrorLikeAnyOther) {
  const std::string directory = testing::TempDir();
  const Result<CredentialsPtr> read = Credentials::read(directory);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message,
            directory + ": it cannot be read; it must be a file that this server may open");
}

TEST(Credentials, AFileOfAnyLengthIsReadAsAWhole) {
  const std::string path = testing::TempDir() + "/credentials_of_three_parts.toml";
  const std::string text = entry("role = \"admin\"") + std::string(10'000, '#') + "\n" +
                           entry("role = \"read\"", "last", "ts_last");
  std::ofstream(path) << text;
  const Result<CredentialsPtr> read = Credentials::read(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->size(), 2u);
  std::remove(path.c_str());
}

TEST(Secret, IsWhatStandsBehindBearer) {
  EXPECT_EQ(bearer_secret("Bearer ts_x"), "ts_x");
  EXPECT_EQ(bearer_secret("bEARER  ts_x"), "ts_x");
  EXPECT_EQ(bearer_secret("Basic dXNlcjpw"), std::nullopt);
  EXPECT_EQ(bearer_secret("Bearer"), std::nullopt);
  EXPECT_EQ(bearer_secret("Bearer "), std::nullopt);
  EXPECT_EQ(bearer_secret(""), std::nullopt);
}

TEST(Secret, ItsDigestIsSha256) {
  EXPECT_EQ(hex_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(parse_digest("zz"), std::nullopt);
  EXPECT_EQ(*parse_digest(hex_of("abc")), digest_of("abc"));
}

}  // namespace
}  // namespace turnstile::access
