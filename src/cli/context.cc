#include "cli/context.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace turnstile::cli {
namespace {

std::unexpected<ClientError> invalid(std::string message) {
  return std::unexpected(
      ClientError{.code = ErrorCode::invalid, .message = std::move(message), .reason = {}, .nodes = {}});
}

// The first line, without the white space around it.
Expected<std::string> read_token(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) {
    return invalid(fmt::format("cannot read a token from {}: {}; check --token-file", path,
                               errno != 0 ? std::strerror(errno) : "it is empty"));
  }
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = line.find_first_not_of(kSpace);
  if (begin == std::string::npos) {
    return invalid(fmt::format("there is no token in {}; check --token-file", path));
  }
  return line.substr(begin, line.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

Expected<ClientSettings> Context::settings(int retries) const {
  ClientSettings settings;
  settings.servers = servers;
  settings.node_id = node;
  settings.max_retries = retries;
  if (token_file.empty()) return settings;
  errno = 0;
  Expected<std::string> token = read_token(token_file);
  if (!token) return std::unexpected(token.error());
  settings.auth_token = std::move(*token);
  return settings;
}

Expected<LockClient> Context::client(int retries) const {
  Expected<ClientSettings> made = settings(retries);
  if (!made) return std::unexpected(made.error());
  return LockClient::create(std::move(*made));
}

}  // namespace turnstile::cli
