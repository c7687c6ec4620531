#include "cli/settings_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

namespace turnstile::cli {
namespace {

constexpr const char* kOfTheMachine = "/etc/turnstile/turnstile.toml";
constexpr const char* kOfTheUser = "/.config/turnstile/turnstile.toml";

void add_servers(std::string_view text, std::vector<std::string>& out) {
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) out.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

}  // namespace

Result<SettingsFile> read_settings_file(const std::string& path) {
  SettingsFile file;
  const std::filesystem::path beside = std::filesystem::path(path).parent_path();
  const std::map<std::string, std::string*> texts = {{"ca", &file.ca},
                                                     {"cert", &file.cert},
                                                     {"key", &file.key},
                                                     {"credential_file", &file.credential_file},
                                                     {"node", &file.node}};
  try {
    for (const auto& [name, value] : toml::parse_file(path)) {
      std::string key(name.str());
      std::replace(key.begin(), key.end(), '-', '_');
      if (key == "server") {
        const toml::array* list = value.as_array();
        for (size_t i = 0; i < (list != nullptr ? list->size() : 1); ++i) {
          const auto text = list != nullptr ? (*list)[i].value<std::string>() : value.value<std::string>();
          if (!text) return fail(fmt::format("{}: 'server' must be a text, or a list of texts", path));
          add_servers(*text, file.servers);
        }
      } else if (key == "insecure_credential") {
        if (!value.is_boolean()) return fail(fmt::format("{}: '{}' must be true or false", path, key));
        file.insecure_credential = value.value_or(false);
      } else if (const auto found = texts.find(key); found != texts.end()) {
        const auto text = value.value<std::string>();
        if (!text) return fail(fmt::format("{}: '{}' must be a text", path, key));
        *found->second = key == "node" || text->empty() ? *text : (beside / *text).string();
      } else {
        return fail(fmt::format("{}: there is no setting '{}'", path, key));
      }
    }
  } catch (const toml::parse_error& error) {
    return fail(fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
  return file;
}

Result<std::string> find_settings_file(const std::string& named, const Environment& environment) {
  const std::string wanted = named.empty() ? environment("TURNSTILE_CONFIG").value_or("") : named;
  if (!wanted.empty()) {
    if (access(wanted.c_str(), R_OK) != 0) return fail(fmt::format("{}: {}", wanted, std::strerror(errno)));
    return wanted;
  }
  const std::string home = environment("HOME").value_or("");
  for (const std::string& path :
       {home.empty() ? std::string() : home + kOfTheUser, std::string(kOfTheMachine)}) {
    if (path.empty()) continue;
    if (access(path.c_str(), R_OK) == 0) return path;
    // Whatever else is wrong than that it is not there: to go on with other servers than those that it names
    // would be worse than to stop here.
    if (errno != ENOENT && errno != ENOTDIR)
      return fail(fmt::format("{}: {}; make it readable for this user, or name another with --config", path,
                              std::strerror(errno)));
  }
  return std::string();
}

}  // namespace turnstile::cli
