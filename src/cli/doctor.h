// What `turnstile doctor` looks at on this machine: pure functions over texts and files, so that each can be
// tested. The command itself asks servers, too (doctor_command.cc).
#pragma once

#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace turnstile::cli {

// One thing that was looked at.
struct Finding {
  enum class Level { good, note, warning, failure };
  Level level = Level::good;
  std::string check;    // what was looked at: "server http://…", "clock"
  std::string message;  // what was found
  std::string advice;   // what to do; empty where nothing is to be done
};
std::string_view to_string(Finding::Level level);

// containerd's settings as far as they concern us. Only what stands in this file: imports are not followed.
struct ContainerdSettings {
  struct Proxy {
    std::string name, type, address;
  };
  std::vector<Proxy> proxies;  // [proxy_plugins.NAME]
  bool built_in_disabled = false;
};
ContainerdSettings parse_containerd_settings(std::string_view toml);
std::vector<Finding> check_containerd(const std::string& path);

// As /proc/self/mounts says.
struct Mount {
  std::string where, type, options;
};
// What a mergerfs was mounted with: it is not among the options. Nothing: it cannot be read.
std::optional<std::string> mergerfs_option(const std::string& mount, std::string_view name);
// Whether what one node writes is safe, and seen by the others. `option_of` is for tests.
using MergerfsOption = std::optional<std::string> (*)(const std::string& mount, std::string_view name);
Finding check_mount(const std::string& check, const Mount& mount, MergerfsOption option_of = mergerfs_option);

// Whether nodes can share this directory: blobs are linked and renamed within it. Makes a file in it, and
// removes it again. `make_link` is for tests: link(2) of a file system without links.
using MakeLink = int (*)(const char* from, const char* to);
std::vector<Finding> check_shared_directory(const std::string& path, MakeLink make_link = ::link);

// `client` and `server` are versions like 0.1.0.
Finding check_versions(const std::string& server, std::string_view client, std::string_view of_server);

}  // namespace turnstile::cli
