// What `turnstile init` writes into a machine's folder, besides certificates: the texts of settings files, of
// the server's credentials file and of the README.
//
// A file of its own, because these are for people: who wants to change what a fresh installation looks like
// changes it here.
#pragma once

#include <string>
#include <vector>

namespace turnstile::cli {

struct InitOptions {
  std::string directory;
  std::vector<std::string> hosts;  // where servers run: names or addresses, as clients reach them
  std::vector<std::string> nodes;  // which nodes there are; empty: the hosts
  // Where a machine's folder goes on that machine; "{machine}" in it is the machine's name.
  std::string prefix = "/etc/turnstile";
  std::string store = "file:/var/lib/turnstile/journal";
  int port = 8086;
  int days = 397;
  bool renew = false;
};

// What it makes; names are relative to the directory.
inline constexpr const char* kAuthorityFolder = "ca";
inline constexpr const char* kAdminFolder = "admin";
inline constexpr const char* kMachinesFolder = "machines";

// An address of IPv6 in brackets.
std::string server_url(const std::string& host, int port);

std::string server_settings(const InitOptions& options, const std::string& host);
// The credentials file: the admin's secret and one for monitoring, and the nodes' certificates.
std::string credentials_file(const InitOptions& options, const std::string& admin_secret,
                             const std::string& monitoring_secret);
// Of the command line on a node, of the plugin there, and of the command line of whoever administers it all.
std::string node_settings(const InitOptions& options, const std::string& node);
std::string content_settings(const InitOptions& options, const std::string& node);
std::string admin_settings(const InitOptions& options);
std::string init_readme(const InitOptions& options);

}  // namespace turnstile::cli
