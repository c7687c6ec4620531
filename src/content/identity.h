// Which plugin on which machine this is.
#pragma once

#include <string>

namespace turnstile::content {

struct Identity {
  // The same after a restart of the plugin; another one on a machine that was made from a copy of this one's
  // disk.
  std::string for_server;
  std::string for_people;
};

// `state`: the directory of --state.
Identity identity_of(const std::string& state);

}  // namespace turnstile::content
