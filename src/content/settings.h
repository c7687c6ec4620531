// What turnstile-content can be told: flags, then environment, then a TOML file.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace turnstile::content {

// What a node does while no lock server can be reached.
enum class WithoutServer : uint8_t {
  wait,  // containerd is told to come again
  pull,  // it pulls for itself, as if it were alone
};

// What the program is to do.
enum class Command : uint8_t {
  serve,         // be containerd's content store
  verify,        // read what the node uses
  import,        // take over containerd's own store
  export_store,  // the way back
};

// Who counts the nodes that use a blob (S17, S18): what the server was told, too.
enum class ReferencesBy : uint8_t { server, client };

// Of the commands other than serve.
struct CommandSettings {
  std::optional<size_t> sample;      // so many blobs
  std::optional<double> percentage;  // or so many of hundred
  int64_t rate = 0;                  // bytes a second; 0: as fast as it can
  bool put_away = false;             // what is damaged
  std::string from, to;              // a content store of containerd's own
};

struct Settings {
  Command command = Command::serve;
  CommandSettings of_command{};
  std::string socket, node, root, state;
  std::vector<std::string> servers;  // empty: this node is alone
  std::string ca, cert, key, credential_file;
  std::string credential;  // the secret itself, by the environment only
  bool insecure_credential = false;
  std::vector<std::string> read_roots;
  WithoutServer without_server = WithoutServer::wait;
  std::chrono::milliseconds visible_within{10'000};  // that another node's blob is to be seen in a root
  std::chrono::milliseconds stalled_after{120'000};  // without a byte, a download is another's; 0: never
  std::chrono::milliseconds settled_after{20'000};   // of a server's life: before that, nothing is removed
  std::chrono::milliseconds keep_unused{0};          // 0: what this node does not use any more leaves at once
  int64_t keep_unused_bytes = 0;                     // at most; 0: no limit
  std::chrono::milliseconds verify_every{0};         // all blobs once in that time; 0: never
  ReferencesBy references = ReferencesBy::server;
  std::string references_dir;  // shared by all nodes; empty: below root
  std::string metrics_listen;  // empty: nowhere
  LogLevel log_level = LogLevel::info;
};

struct CommandLine {
  std::optional<Settings> run;
  std::string print;                 // else: what --help or --version asked for
  std::vector<std::string> notices;  // where the environment wins over the file
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The error is one line that says what is wrong.
Result<CommandLine> read_command_line(int argc, const char* const* argv, const Environment& environment);

}  // namespace turnstile::content
