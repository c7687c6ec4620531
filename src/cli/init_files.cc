#include "cli/init_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/secret.h"

namespace turnstile::cli {
namespace {

std::string list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += fmt::format("{}\"{}\"", out.empty() ? "" : ", ", text);
  return "[" + out + "]";
}

std::string server_urls(const InitOptions& options) {
  std::vector<std::string> urls;
  for (const std::string& host : options.hosts) urls.push_back(server_url(host, options.port));
  return list(urls);
}

std::string place_of(const InitOptions& options, const std::string& machine) {
  constexpr std::string_view kMachine = "{machine}";
  std::string place = options.prefix;
  for (size_t at = 0; (at = place.find(kMachine, at)) != place.npos; at += machine.size())
    place.replace(at, kMachine.size(), machine);
  return place;
}

std::string credential(const std::string& name, const std::string& secret, const std::string& role) {
  return fmt::format("[[credential]]\nname = \"{}\"\nsecret_sha256 = \"{}\"\nrole = \"{}\"\n\n", name,
                     sha256_of(secret), role);
}

}  // namespace

std::string server_url(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != host.npos;
  return fmt::format("https://{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
}

std::string server_settings(const InitOptions& options, const std::string& host) {
  std::vector<std::string> names = options.hosts;
  std::ranges::replace_if(names, [](const std::string& name) { return name.find(':') != name.npos; }, "");
  std::erase(names, "");
  std::string out = fmt::format(
      "# turnstiled --config {0}/turnstiled.toml\n"
      "listen = [\"https://0.0.0.0:{1}\"]\n"
      "store = \"{2}\"\n"
      "tls-cert = \"{0}/server.crt\"\n"
      "tls-key = \"{0}/server.key\"\n"
      "# Nodes show certificates of this CA; credentials.toml says what they may do.\n"
      "tls-client-ca = \"{0}/ca.crt\"\n"
      "credentials = \"{0}/credentials.toml\"\n"
      "# The names by which clients and browsers reach it.\n"
      "host = {3}\n",
      place_of(options, host), options.port, options.store, list(names));
  if (options.store.starts_with("etcd"))
    out += fmt::format("# How the other servers and their clients reach this one.\nadvertise = \"{}\"\n",
                       server_url(host, options.port));
  return out;
}

std::string credentials_file(const InitOptions& options, const std::string& admin_secret,
                             const std::string& monitoring_secret) {
  std::string out =
      "# Who may do what. Read again on SIGHUP. More of them: turnstile credential new NAME --role "
      "client|read|admin\n\n";
  out += credential("admin", admin_secret, "admin");
  out += credential("monitoring", monitoring_secret, "read");
  out += "# Each node speaks for itself only: the name in its certificate is its node_id.\n";
  for (const std::string& node : options.nodes)
    out += fmt::format("[[certificate]]\nname = \"{}\"\nrole = \"client\"\n\n", node);
  return out;
}

std::string node_settings(const InitOptions& options, const std::string& node) {
  return fmt::format(
      "# The command line on this node: it reads {0}/turnstile.toml by itself. Only root can read the key.\n"
      "server = {1}\n"
      "ca = \"{2}/ca.crt\"\n"
      "cert = \"{2}/node.crt\"\n"
      "key = \"{2}/node.key\"\n"
      "node = \"{3}\"\n",
      "/etc/turnstile", server_urls(options), place_of(options, node), node);
}

std::string content_settings(const InitOptions& options, const std::string& node) {
  return fmt::format(
      "# turnstile-content --config {1}/turnstile-content.toml\n"
      "server = {0}\n"
      "ca = \"{1}/ca.crt\"\n"
      "cert = \"{1}/node.crt\"\n"
      "key = \"{1}/node.key\"\n"
      "node = \"{2}\"\n"
      "# Its socket for containerd, the directory that the nodes share, this node's own database, and\n"
      "# metrics for this machine: as in the package's file.\n"
      "socket = \"/run/turnstile-content/content.sock\"\n"
      "root = \"/var/lib/turnstile-content/blobs\"\n"
      "state = \"/var/lib/turnstile-content/state\"\n"
      "metrics-listen = \"127.0.0.1:8087\"\n",
      server_urls(options), place_of(options, node), node);
}

std::string admin_settings(const InitOptions& options) {
  return fmt::format(
      "# For the administrator: turnstile --config {1}/turnstile.toml, or as "
      "~/.config/turnstile/turnstile.toml.\n"
      "server = {0}\n"
      "ca = \"{1}/ca.crt\"\n"
      "credential_file = \"{1}/admin.secret\"\n",
      server_urls(options),
      (std::filesystem::absolute(options.directory) / kAdminFolder).lexically_normal().string());
}

std::string init_readme(const InitOptions& options) {
  std::string machines;
  const auto add = [&](const std::string& name, const char* what) {
    machines += fmt::format("  {}/{}  ->  {}:{}   ({})\n", kMachinesFolder, name, name,
                            place_of(options, name), what);
  };
  for (const std::string& host : options.hosts)
    add(host, std::ranges::find(options.nodes, host) != options.nodes.end() ? "server and node" : "server");
  for (const std::string& node : options.nodes)
    if (std::ranges::find(options.hosts, node) == options.hosts.end()) add(node, "node");
  return fmt::format(
      "What goes where\n"
      "===============\n\n"
      "Each machine gets its own folder, and no other one. Copy its files, for example with scp -p "
      "FOLDER/*:\n\n"
      "{0}\n"
      "On a server: turnstiled's user must be able to read the key and the credentials. With the Debian "
      "package:\n\n"
      "  chown turnstile: {1}/server.key {1}/credentials.toml && systemctl restart turnstiled\n\n"
      "Do not chown the whole folder: on a machine that is also a node, the plugin could not read node.key.\n"
      "Without the package: turnstiled --config {1}/turnstiled.toml\n\n"
      "On a node: `turnstile` reads /etc/turnstile/turnstile.toml by itself; only root can read node.key.\n"
      "The plugin, with the Debian package: systemctl restart turnstile-content\n"
      "Without the package: turnstile-content --config {1}/turnstile-content.toml\n\n"
      "{2}"
      "admin/       for yourself: settings, and a secret that may do everything. Let nobody else read it.\n"
      "admin/monitoring.secret  for Prometheus (authorization.credentials_file): it may only read.\n"
      "ca/          signs the certificates. No machine needs its key: keep the folder offline.\n\n"
      "Renew\n"
      "=====\n\n"
      "Certificates are valid for {3} days. `turnstile init DIR --renew` makes new ones for all machines, "
      "with "
      "the same CA.\n"
      "Copy server.crt, server.key, node.crt and node.key again; then run `systemctl reload turnstiled` "
      "(SIGHUP). The plugin\n"
      "sees by itself that its files have changed.\n\n"
      "If clients use another name for a server (a proxy's), add it to `host` in turnstiled.toml and "
      "restart. "
      "Otherwise\n"
      "requests with that name get 403 foreign_origin.\n"
      "To lock out a node, remove its block from credentials.toml on the servers and send SIGHUP.\n"
      "If somebody else may have seen a secret: turnstile credential new admin --role admin, replace the "
      "block, SIGHUP.\n",
      machines, options.prefix,
      options.hosts.size() > 1 && !options.store.starts_with("etcd")
          ? "Several servers need an etcd: put store = \"etcds://…\" into each turnstiled.toml. Without it "
            "they do not know\n"
            "of each other: do not let them serve the same nodes.\n\n"
          : "",
      options.days);
}

}  // namespace turnstile::cli
