// credential: makes a secret, and what the server is told of it. It talks to no server: who may write the
// server's credentials file decides who comes in.
#include <fmt/format.h>

#include <algorithm>

#include "base/standard_streams.h"
#include "base/utf8.h"
#include "cli/json.h"
#include "cli/program.h"
#include "cli/secret.h"

namespace turnstile::cli {
namespace {

struct CredentialOptions {
  std::string action, name, role;
  std::vector<std::string> nodes, resources;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + quoted(text);
  return "[" + out + "]";
}

bool is_plain(const std::string& text) {
  return !text.empty() && is_utf8(text) &&
         std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c != 0x7f; });
}

std::string block(const CredentialOptions& options, const std::string& secret) {
  std::string out = fmt::format("[[credential]]\nname = {}\nsecret_sha256 = \"{}\"\nrole = \"{}\"\n",
                                quoted(options.name), sha256_of(secret), options.role);
  if (!options.nodes.empty()) out += "nodes = " + list(options.nodes) + "\n";
  if (!options.resources.empty()) out += "resources = " + list(options.resources) + "\n";
  return out;
}

int credential(const Context& context, const CredentialOptions& options) {
  if (options.role != "client" && !options.nodes.empty())
    return report(context.output, "--node is only for the role client: the others act for no node", "usage",
                  kUsage);
  std::vector<std::string> texts = options.nodes;
  texts.insert(texts.end(), options.resources.begin(), options.resources.end());
  texts.push_back(options.name);
  if (!std::ranges::all_of(texts, is_plain))
    return report(context.output, "a name, node or resource is empty, has a control character or is no UTF-8",
                  "usage", kUsage);
  const Result<std::string> secret = new_secret();
  if (!secret) return report(context.output, secret.error().message, "unexpected", kUnexpected);
  if (context.json()) {
    boost::json::object out{{"name", options.name},
                            {"secret", *secret},
                            {"secret_sha256", sha256_of(*secret)},
                            {"role", options.role},
                            {"block", block(options, *secret)}};
    print_json(out);
  } else {
    print_output(
        "The secret, which is not shown again: put it into a file that only {0} can read "
        "(--credential-file).\n\n"
        "{1}\n\nFor the server's credentials file (then SIGHUP); it does not reveal the secret:\n\n{2}",
        options.name, *secret, block(options, *secret));
  }
  return kOk;
}

}  // namespace

void add_credential_command(Command& program, Context& context) {
  auto options = std::make_shared<CredentialOptions>();
  options->role = "client";
  Command command = program.command(
      "credential", "Make a secret to log in with, and the block for the server's credentials file.",
      "  turnstile credential new ci --role client --node 'ci-*' --resource build/\n");
  command.option("ACTION", options->action, "new").required().one_of({"new"});
  command.option("NAME", options->name, "the name of the caller, as the audit log shows it").required();
  command.option("--role", options->role, "what it may do: client, read or admin (client)")
      .one_of({"client", "read", "admin"});
  command.list("--node", options->nodes, "the node_ids that it may use, or PREFIX* (its own name)")
      .shown_as("NAME[,NAME...]");
  command.list("--resource", options->resources, "prefixes of the resource_ids that it may use (all)")
      .shown_as("PREFIX[,PREFIX...]");
  command.runs(context, options, credential);
}

}  // namespace turnstile::cli
