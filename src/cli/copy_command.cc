// copy-store: from a directory to etcd and back, by the server's own program, which has both.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/program.h"

namespace turnstile::cli {
namespace {

struct CopyOptions {
  std::string from, to;
  std::string ca, cert, key, user, password_file;
};

// What was installed together lies together.
std::string server_program() {
  std::error_code none;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", none);
  const std::filesystem::path beside = own.parent_path() / "turnstiled";
  return std::filesystem::exists(beside, none) ? beside.string() : "turnstiled";
}

int copy(const Context& context, const CopyOptions& options) {
  std::vector<std::string> words = {server_program(), "--copy-from", options.from, "--store", options.to};
  const std::pair<const char*, const std::string&> more[] = {{"--etcd-ca", options.ca},
                                                             {"--etcd-cert", options.cert},
                                                             {"--etcd-key", options.key},
                                                             {"--etcd-user", options.user},
                                                             {"--etcd-password-file", options.password_file}};
  for (const auto& [flag, value] : more)
    if (!value.empty()) words.insert(words.end(), {flag, value});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  return report(context.output, fmt::format("{} cannot be run: {}", words.front(), std::strerror(errno)),
                "copy-store", kUnexpected);
}

}  // namespace

void add_copy_command(Command& program, Context& context) {
  auto options = std::make_shared<CopyOptions>();
  Command command = program.command(
      "copy-store", "Copy all that a server has kept into another store, with all servers stopped.",
      "  turnstile copy-store file:/var/lib/turnstile/journal etcd://h1:2379,h2:2379,h3:2379/turnstile\n"
      "  turnstile copy-store etcd://h1:2379/turnstile file:/var/lib/turnstile/journal\n");
  command.option("FROM", options->from, "file:DIR or etcd://HOST:PORT,…/PREFIX").required();
  command.option("TO", options->to, "the same; must be empty").required();
  command.option("--etcd-ca", options->ca, "the CA of the certificates of etcd's members").shown_as("FILE");
  command.option("--etcd-cert", options->cert, "a certificate for etcd").shown_as("FILE");
  command.option("--etcd-key", options->key, "... and its key").shown_as("FILE");
  command.option("--etcd-user", options->user, "the user in etcd").shown_as("NAME");
  command.option("--etcd-password-file", options->password_file, "... and its password").shown_as("FILE");
  command.runs(context, options, copy);
}

}  // namespace turnstile::cli
