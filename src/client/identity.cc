#include "client/identity.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace turnstile {

inline namespace v1 {
ClientSettings settings_from_environment() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  ClientSettings settings;
  std::vector<std::string> servers;
  const std::string all = variable("TURNSTILE_SERVER");
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find(',', begin), all.size());
    if (end > begin) servers.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!servers.empty()) settings.servers = std::move(servers);
  settings.node_id = variable("TURNSTILE_NODE");
  settings.ca_file = variable("TURNSTILE_CA");
  settings.certificate_file = variable("TURNSTILE_CERT");
  settings.key_file = variable("TURNSTILE_KEY");
  settings.credential = variable("TURNSTILE_CREDENTIAL");
  if (settings.credential.empty()) settings.credential_file = variable("TURNSTILE_CREDENTIAL_FILE");
  return settings;
}
}  // namespace v1

namespace client {
namespace {

constexpr Steady::duration kLookEvery = std::chrono::seconds(1);

struct stat look_at(const std::string& path) {
  struct stat about{};
  if (stat(path.c_str(), &about) != 0) about = {};
  return about;
}

bool same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

std::expected<std::string, std::string> read_credential(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) {
    return std::unexpected(fmt::format("cannot read a credential from {}: {}", path,
                                       errno != 0 ? std::strerror(errno) : "it is empty"));
  }
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = line.find_first_not_of(kSpace);
  if (begin == std::string::npos) return std::unexpected(fmt::format("there is no credential in {}", path));
  line = line.substr(begin, line.find_last_not_of(kSpace) - begin + 1);
  for (const char c : line)
    if (uint8_t(c) <= 0x20 || c == 0x7f)
      return std::unexpected(
          fmt::format("what is in {} is no credential: it has white space or control "
                      "characters",
                      path));
  return line;
}

Identity::Identity(const ClientSettings& settings) : settings_(settings), credential_(settings.credential) {
  const Locked lock(mutex_);
  for (const std::string* path :
       {&settings_.credential_file, &settings_.ca_file, &settings_.certificate_file, &settings_.key_file}) {
    if (!path->empty()) seen_.push_back({*path, look_at(*path)});
  }
  looked_ = Steady::now().time_since_epoch().count();
  if (settings_.credential_file.empty()) return;
  if (auto read = read_credential(settings_.credential_file)) credential_ = std::move(*read);
}

uint64_t Identity::generation() {
  // All that is read here never changes; the hot path of a client without files.
  if (settings_.credential_file.empty() && settings_.ca_file.empty() && settings_.certificate_file.empty())
    return 0;
  const Steady::time_point now = Steady::now();
  if (now - Steady::time_point(Steady::duration(looked_.load())) >= kLookEvery) (void)look_again();
  return generation_;
}

bool Identity::look_again() {
  const Locked lock(mutex_);
  looked_ = Steady::now().time_since_epoch().count();
  const uint64_t before = generation_;
  look();
  return generation_ != before;
}

void Identity::look() {
  bool changed = false;
  for (Seen& seen : seen_) {
    const struct stat about = look_at(seen.path);
    if (same(about, seen.about)) continue;
    seen.about = about;
    if (seen.path != settings_.credential_file) {
      changed = true;
    } else if (auto read = read_credential(seen.path)) {
      changed |= *read != credential_;
      credential_ = std::move(*read);
    } else if (settings_.on_notice) {
      settings_.on_notice(read.error() + "; the one from before is used");
    }
  }
  if (!changed) return;
  ++generation_;
  if (settings_.on_notice)
    settings_.on_notice("credential or certificates have changed, and are used from now on");
}

std::string Identity::credential_for(const ServerUrl& url) const {
  if (!url.is_private() && !settings_.insecure_credential) return {};
  const Locked lock(mutex_);
  return credential_;
}

}  // namespace client
}  // namespace turnstile
