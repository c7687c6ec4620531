// How a client of etcd's comes to be: the settings, and the one function that makes it.
//
// Apart from the interface, so that whoever stands on that need not know gRPC, and is tested without.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "etcd/etcd.h"

namespace turnstile::etcd {

struct Options {
  std::vector<std::string> endpoints{};  // "http://HOST:PORT" or "https://HOST:PORT", all of one kind
  std::string ca_file{};                 // https: who signs the members' certificates; empty: the system's
  std::string cert_file{}, key_file{};   // https: the certificate that is shown to them; both or none
  std::string user{}, password{};        // empty: without
};

// Reads the files, and asks nobody yet. An error is a sentence about a setting that is wrong.
//
// What the client then promises: members are asked one after the other, for a change first the one that
// leads, else the one that has answered last; and a call that may have been carried out is never sent to
// another. No proxy is taken from the environment.
std::expected<std::unique_ptr<Client>, std::string> connect(const Options& options);

}  // namespace turnstile::etcd
