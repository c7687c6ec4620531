// init: from nothing to a secured installation, one folder a machine; and later, new certificates for all of
// them.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/file_text.h"
#include "base/standard_streams.h"
#include "base/unique_fd.h"
#include "cli/certificates.h"
#include "cli/init_files.h"
#include "cli/program.h"
#include "cli/secret.h"

namespace turnstile::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kAuthorityDays = 3650;
constexpr mode_t kForAll = 0644, kForItsUser = 0600;

// A name that can be a folder, a name in a certificate and a text in a settings file.
bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= 253 && name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                  c == '-' || c == '_' || c == ':';
         });
}

std::unexpected<Error> system_error(const fs::path& path) {
  return fail(fmt::format("{}: {}", path.string(), std::strerror(errno)));
}

// A new file; what is there already stays, and is an error.
Result<void> write_new(const fs::path& path, const std::string& text, mode_t mode) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.is_open() || ::fchmod(file.get(), mode) != 0) return system_error(path);
  if (::write(file.get(), text.data(), text.size()) != ssize_t(text.size()) || ::fsync(file.get()) != 0)
    return system_error(path);
  return {};
}

// In the place of what is there, at once.
Result<void> replace(const fs::path& path, const std::string& text, mode_t mode) {
  fs::path fresh = path;
  fresh += ".new";
  ::unlink(fresh.c_str());
  if (Result<void> written = write_new(fresh, text, mode); !written) return written;
  if (::rename(fresh.c_str(), path.c_str()) != 0) return system_error(path);
  return {};
}

Result<std::string> read_text(const fs::path& path) {
  std::optional<std::string> text = file_text(path);
  if (!text) return system_error(path);
  return *std::move(text);
}

Result<void> make_folder(const fs::path& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (!problem) fs::permissions(path, fs::perms::owner_all, problem);
  if (problem) return fail(fmt::format("{}: {}", path.string(), problem.message()));
  return {};
}

// Writes one thing after the other until one cannot be written; the last step says which.
class Writing {
 public:
  explicit Writing(fs::path folder) : folder_(std::move(folder)) { result_ = make_folder(folder_); }
  void file(const std::string& name, const std::string& text, mode_t mode = kForAll) {
    if (result_) result_ = write_new(folder_ / name, text, mode);
  }
  void pair(const std::string& name, const Result<Pair>& pair) {
    if (result_ && !pair) result_ = std::unexpected(pair.error());
    if (!result_) return;
    file(name + ".crt", pair->certificate);
    file(name + ".key", pair->key, kForItsUser);
  }
  const Result<void>& result() const { return result_; }

 private:
  fs::path folder_;
  Result<void> result_;
};

std::vector<std::string> names_of_server(const std::string& host) {
  std::vector<std::string> names{host};
  for (const char* const own : {"localhost", "127.0.0.1", "::1"})
    if (host != own) names.emplace_back(own);
  return names;
}

Result<void> write_machine(const InitOptions& options, const Authority& authority, const std::string& name,
                           const std::string& credentials) {
  const auto is_in = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, name) != names.end();
  };
  Writing machine(fs::path(options.directory) / kMachinesFolder / name);
  machine.file("ca.crt", authority.pair().certificate);
  if (is_in(options.hosts)) {
    machine.pair("server", authority.issue(names_of_server(name), CertificateUse::server, options.days));
    machine.file("turnstiled.toml", server_settings(options, name));
    machine.file("credentials.toml", credentials, kForItsUser);
  }
  if (is_in(options.nodes)) {
    machine.pair("node", authority.issue({name}, CertificateUse::node, options.days));
    machine.file("turnstile.toml", node_settings(options, name));
    machine.file("turnstile-content.toml", content_settings(options, name));
  }
  return machine.result();
}

Result<void> write_all(const InitOptions& options) {
  const Result<Authority> authority = Authority::make("Turnstile CA", kAuthorityDays);
  if (!authority) return std::unexpected(authority.error());
  const Result<std::string> admin = new_secret(), monitoring = new_secret();
  if (!admin) return std::unexpected(admin.error());
  if (!monitoring) return std::unexpected(monitoring.error());

  Writing top(options.directory);
  top.file("README", init_readme(options));
  if (!top.result()) return top.result();
  Writing signing(fs::path(options.directory) / kAuthorityFolder);
  signing.pair("ca", authority->pair());
  if (!signing.result()) return signing.result();
  Writing own(fs::path(options.directory) / kAdminFolder);
  own.file("turnstile.toml", admin_settings(options));
  own.file("ca.crt", authority->pair().certificate);
  own.file("admin.secret", *admin + "\n", kForItsUser);
  own.file("monitoring.secret", *monitoring + "\n", kForItsUser);
  if (!own.result()) return own.result();

  if (Result<void> made = make_folder(fs::path(options.directory) / kMachinesFolder); !made) return made;
  std::vector<std::string> machines = options.hosts;
  for (const std::string& node : options.nodes)
    if (std::ranges::find(machines, node) == machines.end()) machines.push_back(node);
  const std::string credentials = credentials_file(options, *admin, *monitoring);
  for (const std::string& machine : machines)
    if (Result<void> written = write_machine(options, *authority, machine, credentials); !written)
      return written;
  return {};
}

// As turnstiled has it (--store); "memory" is not for an installation.
bool is_store(const std::string& store) {
  return std::ranges::any_of(std::array{"file:", "etcd://", "etcds://"}, [&](std::string_view scheme) {
    return store.starts_with(scheme) && store.size() > scheme.size();
  });
}

void remove_what_was_made(const fs::path& directory, bool was_there) {
  std::error_code ignored;
  if (!was_there) {
    fs::remove_all(directory, ignored);
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored))
    fs::remove_all(entry.path(), ignored);
}

int make(const Context& context, InitOptions options) {
  if (options.hosts.empty())
    return report(context.output, "--hosts is missing: the names by which clients reach the servers", "usage",
                  kUsage);
  if (options.nodes.empty()) options.nodes = options.hosts;
  for (const std::vector<std::string>* names : {&options.hosts, &options.nodes})
    for (const std::string& name : *names)
      if (!is_name(name))
        return report(context.output, fmt::format("'{}' is no name or address of a machine", name), "usage",
                      kUsage);
  for (std::vector<std::string>* names : {&options.hosts, &options.nodes}) {
    std::vector<std::string> once;
    for (std::string& name : *names)
      if (std::ranges::find(once, name) == once.end()) once.push_back(std::move(name));
    *names = std::move(once);
  }
  if (!is_store(options.store))
    return report(
        context.output,
        fmt::format("--store '{}' is no store: file:DIR, or etcds://HOST:2379/PREFIX", options.store),
        "usage", kUsage);
  if (!options.prefix.starts_with('/'))
    return report(context.output, fmt::format("--prefix '{}' must begin with /", options.prefix), "usage",
                  kUsage);
  std::error_code ignored;
  if (fs::exists(options.directory, ignored) && !fs::is_empty(options.directory, ignored))
    return report(
        context.output,
        fmt::format("{} is not empty, and nothing in it is overwritten; --renew makes new certificates",
                    options.directory),
        "exists", kRefused);
  // A symlink to nothing is there, too: it is not ours to remove.
  const bool was_there = fs::exists(fs::symlink_status(options.directory, ignored));
  if (const Result<void> written = write_all(options); !written) {
    remove_what_was_made(options.directory, was_there);  // or the next try would be refused
    return report(context.output, written.error().message, "unexpected", kUnexpected);
  }
  if (!context.json())
    print_output("{0} has a folder for each machine, one for you, and the CA. What goes where: {0}/README\n",
                 options.directory);
  return kOk;
}

Result<void> renew_one(const Authority& authority, const fs::path& folder, const char* name,
                       CertificateUse use, int days) {
  const fs::path certificate = folder / (std::string(name) + ".crt"),
                 key = folder / (std::string(name) + ".key");
  std::error_code ignored;
  if (!fs::exists(certificate, ignored)) return {};
  const Result<std::string> old = read_text(certificate);
  if (!old) return std::unexpected(old.error());
  const Result<std::vector<std::string>> names = names_in(*old);
  if (!names) return fail(fmt::format("{}: {}", certificate.string(), names.error().message));
  const Result<Pair> fresh = authority.issue(*names, use, days);
  if (!fresh) return std::unexpected(fresh.error());
  if (Result<void> written = replace(key, fresh->key, kForItsUser); !written) return written;
  return replace(certificate, fresh->certificate, kForAll);
}

Result<size_t> renew_all(const InitOptions& options) {
  const fs::path directory = options.directory;
  const Result<std::string> certificate = read_text(directory / kAuthorityFolder / "ca.crt");
  if (!certificate) return std::unexpected(certificate.error());
  const Result<std::string> key = read_text(directory / kAuthorityFolder / "ca.key");
  if (!key) return std::unexpected(key.error());
  const Result<Authority> authority = Authority::read({*certificate, *key});
  if (!authority)
    return fail(fmt::format("{}/{}: {}", options.directory, kAuthorityFolder, authority.error().message));
  size_t machines = 0;
  std::error_code problem;
  for (const fs::directory_entry& machine : fs::directory_iterator(directory / kMachinesFolder, problem)) {
    for (const auto& [name, use] :
         {std::pair("server", CertificateUse::server), {"node", CertificateUse::node}})
      if (Result<void> renewed = renew_one(*authority, machine.path(), name, use, options.days); !renewed)
        return std::unexpected(renewed.error());
    ++machines;
  }
  if (problem) return fail(fmt::format("{}/{}: {}", options.directory, kMachinesFolder, problem.message()));
  return machines;
}

int renew(const Context& context, const InitOptions& options) {
  const Result<size_t> machines = renew_all(options);
  if (!machines) return report(context.output, machines.error().message, "unexpected", kUnexpected);
  if (!context.json())
    print_output(
        "{} machines have new certificates in {}/{}. Copy each to its machine, then SIGHUP to turnstiled.\n",
        *machines, options.directory, kMachinesFolder);
  return kOk;
}

int init(const Context& context, const InitOptions& options) {
  return options.renew ? renew(context, options) : make(context, options);
}

}  // namespace

void add_init_command(Command& program, Context& context) {
  auto options = std::make_shared<InitOptions>();
  Command command =
      program.command("init", "Make certificates, credentials and settings files: a folder for each machine.",
                      "  turnstile init ./secured --hosts lock.example --nodes node-a,node-b,node-c\n"
                      "  turnstile init ./secured --renew\n");
  command.option("DIR", options->directory, "a new or empty folder; with --renew, the one that init made")
      .required();
  Option hosts = command
                     .list("--hosts", options->hosts,
                           "the machines of the servers, by the names or addresses that clients use")
                     .shown_as("NAME[,NAME...]");
  Option nodes =
      command.list("--nodes", options->nodes, "the nodes: each gets a certificate with its name (the hosts)")
          .shown_as("NAME[,NAME...]");
  command.option("--port", options->port, "the port of the servers (8086)").between(1, 65535);
  command.option("--store", options->store, "the store of the servers (file:/var/lib/turnstile/journal)")
      .shown_as("STORE");
  command
      .option("--prefix", options->prefix,
              "where a folder goes on its machine; {machine} is its name (/etc/turnstile)")
      .shown_as("DIR");
  command.option("--days", options->days, "how long the certificates are valid (397)").between(1, 3650);
  command.flag("--renew", options->renew, "new certificates for all machines of DIR, by the same CA")
      .excludes(hosts)
      .excludes(nodes);
  command.runs(context, options, init);
}

}  // namespace turnstile::cli
