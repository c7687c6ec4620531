// The settings file of the program `turnstile`: where the servers are, and who this is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace turnstile::cli {

struct SettingsFile {
  std::vector<std::string> servers;
  std::string ca, cert, key, credential_file, node;
  bool insecure_credential = false;
};

// TOML; a path that is not absolute is one beside the file. The error is one line that says what is wrong.
Result<SettingsFile> read_settings_file(const std::string& path);

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The one to be read: `named`, else $TURNSTILE_CONFIG, else the user's own, else the machine's; empty: none.
// One that was named must be there. One of the others that is there, or may be, and cannot be read is an
// error.
Result<std::string> find_settings_file(const std::string& named, const Environment& environment);

}  // namespace turnstile::cli
