// The credentials file, as an administrator writes it. What must hold:
// - what is refused is told in one line, which begins with the file's name;
// - what is accepted names somebody, and means the same when it is read again, and with a comment behind it;
// - whoever is found has a name; only a client speaks for nodes, and always for one; an admin is not
// narrowed; no
//   list has an empty text, which would mean all;
// - who has been found is found again by what it has shown.
#include "access/credentials.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

using namespace access;

// In the seeds: its digest is in some of them.
constexpr std::string_view kSecret = "ts_known";

std::optional<uint32_t> find_user(const std::string& name) {
  if (name == "root") return 0;
  if (name == "1000") return 1000;
  return std::nullopt;
}

void check(const PrincipalPtr& who, const Credentials& in) {
  if (!who) return;
  TS_CHECK(!who->name.empty(), "whoever is found has a name");
  TS_CHECK((who->role == Role::client) != who->nodes.empty(), "only a client speaks for nodes, and for one");
  TS_CHECK(who->role != Role::admin || who->resources.empty(), "an admin is not narrowed");
  for (const std::string& prefix : who->resources) TS_CHECK(!prefix.empty(), "no prefix is empty");
  const PrincipalPtr again = in.find(who->proof);
  TS_CHECK(again && *again == *who, "who has been found is found again");
}

bool same(const PrincipalPtr& a, const PrincipalPtr& b) { return a && b ? *a == *b : a == b; }

}  // namespace

void run(std::string_view bytes) {
  const ExactCopy copy(bytes);
  const Result<CredentialsPtr> read = Credentials::parse(copy.view(), "FILE", find_user);
  if (!read) {
    TS_CHECK(read.error().message.starts_with("FILE:"), "a refusal names the file");
    TS_CHECK(read.error().message.find('\n') == std::string::npos, "a refusal is one line");
    return;
  }
  TS_CHECK((*read)->size() > 0, "a file that is accepted names somebody");
  const Result<CredentialsPtr> again =
      Credentials::parse(std::string(bytes) + "\n# nobody\n", "FILE", find_user);
  TS_CHECK(again && (*again)->size() == (*read)->size(), "a comment changes nothing");
  const auto try_all = [&](const auto& find) {
    const PrincipalPtr who = find(**read);
    check(who, **read);
    TS_CHECK(same(who, find(**again)), "a file that is read again means the same");
  };
  try_all([](const Credentials& in) { return in.find_secret(kSecret); });
  for (const std::string_view name : {"node-a", "node-b", "a"})
    try_all([name](const Credentials& in) { return in.find_certificate(name); });
  for (const uint32_t uid : {0, 1000, 7}) try_all([uid](const Credentials& in) { return in.find_user(uid); });
}

}  // namespace turnstile::fuzz
