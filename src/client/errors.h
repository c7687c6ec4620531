// From what the server or the wires say to what the caller is told.
#pragma once

#include <string>
#include <string_view>

#include "client/answers.h"
#include "client/transport.h"
#include "turnstile/error.h"

namespace turnstile::client {

ClientError make_error(ErrorCode code, std::string message);
inline std::unexpected<ClientError> fail(ErrorCode code, std::string message) {
  return std::unexpected(make_error(code, std::move(message)));
}

// An answer that is not 200 and will not become better by asking again.
ClientError error_of(int status, const Refusal& refusal);
ClientError error_of(const TransportError& error, std::string_view server);
ClientError not_turnstile(std::string_view server, int status);

}  // namespace turnstile::client
