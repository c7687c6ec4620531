#include "cli/context.h"

#include <cstdlib>
#include <cstring>

#include "base/daemon.h"
#include "cli/settings_file.h"

namespace turnstile::cli {
namespace {

constexpr const char* kHere = "http://127.0.0.1:8086";

void fill(std::string& value, std::string otherwise) {
  if (value.empty()) value = std::move(otherwise);
}

Result<SettingsFile> settings_file(const std::string& named) {
  const Result<std::string> path = find_settings_file(named, from_environment);
  if (!path) return std::unexpected(path.error());
  return path->empty() ? SettingsFile() : read_settings_file(*path);
}

}  // namespace

void Context::complete() {
  const std::string secret = from_environment("TURNSTILE_CREDENTIAL").value_or("");
  // Where it stands, too: a command that we run could read it in /proc.
  if (char* const place = std::getenv("TURNSTILE_CREDENTIAL")) explicit_bzero(place, std::strlen(place));
  unsetenv("TURNSTILE_CREDENTIAL");
  if (credential_file.empty()) credential = secret;
  if (credential_file.empty() && credential.empty())
    credential_file = from_environment("TURNSTILE_CREDENTIAL_FILE").value_or("");
  Result<SettingsFile> read = settings_file(config);
  if (!read) settings_fault = read.error().message;
  SettingsFile file = std::move(read).value_or(SettingsFile());
  if (servers.empty()) servers = std::move(file.servers);
  if (servers.empty()) servers = {kHere};
  fill(ca, std::move(file.ca));
  if (cert.empty() && key.empty()) {  // the two belong together
    cert = std::move(file.cert);
    key = std::move(file.key);
  }
  fill(node, std::move(file.node));
  if (credential.empty()) fill(credential_file, std::move(file.credential_file));
  insecure_credential |= file.insecure_credential;
}

Expected<ClientSettings> Context::settings(int retries) const {
  if (!settings_fault.empty())
    return std::unexpected(
        ClientError{.code = ErrorCode::invalid, .message = settings_fault, .reason = "usage", .nodes = {}});
  ClientSettings settings;
  settings.servers = servers;
  settings.node_id = node;
  settings.max_retries = retries;
  settings.ca_file = ca;
  settings.certificate_file = cert;
  settings.key_file = key;
  settings.credential = credential;
  settings.credential_file = credential_file;
  settings.insecure_credential = insecure_credential;
  return settings;
}

Expected<LockClient> Context::client(int retries) const {
  Expected<ClientSettings> made = settings(retries);
  if (!made) return std::unexpected(made.error());
  return LockClient::create(std::move(*made));
}

}  // namespace turnstile::cli
