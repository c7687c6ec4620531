#include "cli/doctor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/unique_fd.h"

namespace turnstile::cli {
namespace {

using Level = Finding::Level;

constexpr std::string_view kBuiltIn = "io.containerd.content.v1.content";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Without a comment: a # outside of quotes.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote != 0)
      quote = line[i] == quote ? char(0) : quote;
    else if (line[i] == '"' || line[i] == '\'')
      quote = line[i];
    else if (line[i] == '#')
      return line.substr(0, i);
  }
  return line;
}

std::string unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    return std::string(text.substr(1, text.size() - 2));
  return std::string(text);
}

// The mount with the longest name that `path` begins with.
Mount mount_of(const std::string& path) {
  std::ifstream mounts("/proc/self/mounts");
  Mount found;
  size_t longest = 0;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, where, type, options;
    if (!(words >> device >> where >> type >> options)) continue;
    const bool below = where == "/" || path == where || path.starts_with(where + "/");
    if (!below || where.size() < longest) continue;
    longest = where.size();
    found = {where, type, options};
  }
  return found;
}

bool has_option(const std::string& options, std::string_view wanted) {
  std::istringstream words(options);
  for (std::string word; std::getline(words, word, ',');)
    if (word == wanted) return true;
  return false;
}

Finding check_nfs(const std::string& check, const Mount& mount) {
  if (has_option(mount.options, "soft"))
    return {Level::failure, check,
            "NFS, mounted with `soft`: a write may fail and be lost when the server is slow",
            "mount it with `hard`"};
  // The kernel shows what differs from lookupcache=all, by its short name.
  for (std::string_view good : {"lookupcache=pos", "lookupcache=positive", "lookupcache=none"})
    if (has_option(mount.options, good))
      return {Level::good, check, fmt::format("{}, mounted hard, with {}", mount.type, good), ""};
  return {
      Level::warning, check,
      fmt::format("{}, mounted hard, but it remembers which files are missing: what another node has just "
                  "written may not be seen for up to a minute",
                  mount.type),
      "mount it with lookupcache=positive (docs/containerd.md)"};
}

Finding check_mergerfs(const std::string& check, const Mount& mount, MergerfsOption option_of) {
  const std::optional<std::string> files = option_of(mount.where, "cache.files"),
                                   names = option_of(mount.where, "cache.readdir");
  if (!files || !names)
    return {Level::note, check,
            fmt::format("mergerfs; cannot tell what it caches: {}/.mergerfs cannot be read", mount.where),
            "mount it with cache.files=off and without cache.readdir (docs/containerd.md)"};
  if (*files != "off" || *names != "false")
    return {
        Level::warning, check,
        fmt::format("mergerfs, with cache.files={}, cache.readdir={}: what another node has just written may "
                    "not be seen",
                    *files, *names),
        "mount it with cache.files=off and without cache.readdir (docs/containerd.md)"};
  return {Level::note, check,
          "mergerfs, which caches no files: each node writes to its own disk, and all are read through this "
          "mount",
          "--root is the node's disk, --read-root this mount (docs/containerd.md)"};
}
// As the plugin takes it (content/directory.cc).
bool says_no_links(int code) {
  return code == EPERM || code == EACCES || code == ENOTSUP || code == ENOSYS || code == EINVAL ||
         code == EMLINK;
}

// Links and renames, as the plugin publishes a blob.
Finding check_links(const std::string& check, const std::string& path, MakeLink make_link) {
  const std::string first = fmt::format("{}/.turnstile-doctor-{}", path, ::getpid()),
                    second = first + "-linked";
  const auto failed = [&](std::string_view what) {
    const int code = errno;
    ::unlink(first.c_str());
    ::unlink(second.c_str());
    return Finding{Level::failure, check, fmt::format("cannot {} in {}: {}", what, path, std::strerror(code)),
                   "the plugin needs the right to write here"};
  };
  {
    const UniqueFd file(::open(first.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (!file.is_open()) return failed("make a file");
    if (::fsync(file.get()) != 0) return failed("sync a file");
  }
  const bool linked = make_link(first.c_str(), second.c_str()) == 0;
  if (!linked && !says_no_links(errno)) return failed("make a hard link");
  struct stat status;
  if (linked && (::stat(first.c_str(), &status) != 0 || status.st_nlink != 2))
    return failed("see the second name of a file");
  if (::rename((linked ? second : first).c_str(), (first + "-renamed").c_str()) != 0)
    return failed("rename a file");
  ::unlink((first + "-renamed").c_str());
  ::unlink(first.c_str());
  if (linked) return {Level::good, check, "files can be made, synced, linked and renamed", ""};
  return {
      Level::warning, check,
      "files can be made, synced and renamed, but there are no hard links: the plugin then depends on the "
      "lock server",
      "see --settled-after in docs/containerd.md; not every FUSE file system and SMB share has hard links"};
}

// A version's first two numbers: "0.1".
std::string_view minor_of(std::string_view version) {
  const size_t first = version.find('.');
  return version.substr(0, first == version.npos ? first : version.find('.', first + 1));
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::good:
      return "good";
    case Level::note:
      return "note";
    case Level::warning:
      return "warning";
    case Level::failure:
      return "failure";
  }
  return "";
}

ContainerdSettings parse_containerd_settings(std::string_view toml) {
  ContainerdSettings settings;
  ContainerdSettings::Proxy* proxy = nullptr;
  bool top = true, in_disabled = false;
  while (!toml.empty()) {
    std::string_view line = toml.substr(0, toml.find('\n'));
    toml.remove_prefix(std::min(toml.size(), line.size() + 1));
    line = trimmed(without_comment(line));
    if (in_disabled || (top && line.starts_with("disabled_plugins"))) {  // a list, perhaps of several lines
      if (line.find(fmt::format("\"{}\"", kBuiltIn)) != line.npos ||
          line.find(fmt::format("'{}'", kBuiltIn)) != line.npos)
        settings.built_in_disabled = true;
      in_disabled = line.find(']') == line.npos;
      continue;
    }
    if (line.starts_with('[')) {
      top = false;
      proxy = nullptr;
      const std::string_view name = trimmed(line.substr(1, line.find(']') - 1));
      constexpr std::string_view kPrefix = "proxy_plugins.";
      if (name.starts_with(kPrefix) && name.find('.', kPrefix.size()) == name.npos)
        proxy = &settings.proxies.emplace_back(unquoted(name.substr(kPrefix.size())), "", "");
      continue;
    }
    const size_t equals = line.find('=');
    if (proxy == nullptr || equals == line.npos) continue;
    const std::string_view key = trimmed(line.substr(0, equals));
    const std::string value = unquoted(trimmed(line.substr(equals + 1)));
    if (key == "type") proxy->type = value;
    if (key == "address") proxy->address = value;
  }
  return settings;
}

std::vector<Finding> check_containerd(const std::string& path) {
  const std::string check = "containerd " + path;
  std::ifstream file(path);
  if (!file)
    return {{Level::note, check, "there is no such file: no containerd here, or elsewhere",
             "--containerd-config FILE"}};
  std::ostringstream text;
  text << file.rdbuf();
  const ContainerdSettings settings = parse_containerd_settings(text.str());
  std::vector<ContainerdSettings::Proxy> content;
  std::ranges::copy_if(settings.proxies, std::back_inserter(content),
                       [](const ContainerdSettings::Proxy& proxy) { return proxy.type == "content"; });
  if (content.empty())
    return {{Level::note, check,
             "no [proxy_plugins.…] of type \"content\": this containerd does not use the plugin",
             "to use it: the lines of packaging/containerd-config-*.toml (docs/containerd.md)"}};
  std::vector<Finding> findings;
  if (content.size() > 1)
    findings.push_back({Level::failure, check, "more than one proxy plugin of type \"content\"",
                        "containerd takes exactly one: keep one"});
  if (!settings.built_in_disabled)
    findings.push_back({Level::failure, check,
                        "the built-in content store is on, too: containerd will not start with both",
                        fmt::format("disabled_plugins = [\"{}\"]", kBuiltIn)});
  const std::string& address = content.front().address;
  struct stat status;
  if (!address.starts_with('/'))
    findings.push_back({Level::failure, check,
                        fmt::format("the plugin's address '{}' is no absolute path", address),
                        "address = \"/run/turnstile-content/content.sock\""});
  else if (::stat(address.c_str(), &status) != 0)
    findings.push_back({Level::failure, check,
                        fmt::format("there is no socket {}: {}", address, std::strerror(errno)),
                        "systemctl enable --now turnstile-content.socket turnstile-content.service"});
  else if (!S_ISSOCK(status.st_mode))
    findings.push_back({Level::failure, check, fmt::format("{} is no socket", address),
                        "as --socket of turnstile-content says"});
  if (findings.empty())
    findings.push_back(
        {Level::good, check, fmt::format("uses the plugin {} at {}", content.front().name, address), ""});
  return findings;
}

std::optional<std::string> mergerfs_option(const std::string& mount, std::string_view name) {
  char value[64];
  const ssize_t size = ::getxattr((mount + "/.mergerfs").c_str(),
                                  fmt::format("user.mergerfs.{}", name).c_str(), value, sizeof value);
  if (size < 0) return std::nullopt;
  return std::string(value, size_t(size));
}

Finding check_mount(const std::string& check, const Mount& mount, MergerfsOption option_of) {
  if (mount.type.starts_with("nfs")) return check_nfs(check, mount);
  if (mount.type.starts_with("fuse.mergerfs")) return check_mergerfs(check, mount, option_of);
  if (mount.type == "tmpfs" || mount.type == "overlay")
    return {Level::warning, check,
            fmt::format("{}: only this machine sees it, and it may be gone after a restart", mount.type),
            "share a directory of a network file system, or one disk per node seen through one mount"};
  return {Level::note, check, fmt::format("{}: a disk of this machine's own", mount.type),
          "fine for one node, or where all nodes are on this machine; else share it by NFS or the like"};
}

std::vector<Finding> check_shared_directory(const std::string& path, MakeLink make_link) {
  const std::string check = "directory " + path;
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr)
    return {{Level::failure, check, fmt::format("cannot be reached: {}", std::strerror(errno)),
             "is it mounted? make it, or name another with --shared"}};
  const std::string resolved(real);
  ::free(real);
  struct stat status;
  if (::stat(resolved.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return {{Level::failure, check, "is no directory", "name the directory that the nodes share"}};
  return {check_mount(check, mount_of(resolved)), check_links(check, resolved, make_link)};
}

Finding check_versions(const std::string& server, std::string_view client, std::string_view of_server) {
  const std::string check = "version of " + server;
  if (client == of_server)
    return {Level::good, check, fmt::format("turnstiled {}, as this program", of_server), ""};
  if (minor_of(client) == minor_of(of_server))
    return {Level::good, check,
            fmt::format("turnstiled {}, this program is {}: they work together", of_server, client), ""};
  return {Level::warning, check, fmt::format("turnstiled {}, this program is {}", of_server, client),
          "use the same minor version everywhere; server first (docs/compatibility.md)"};
}

}  // namespace turnstile::cli
