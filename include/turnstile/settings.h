// How a program reaches its servers.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "turnstile/export.h"

namespace turnstile {
inline namespace v1 {

// How lock() waits for its turn. `automatic` begins with the long poll and changes when what lies between (a
// proxy that cuts or buffers) does not let it pass; the others are for tests and special cases.
enum class WaitBy { automatic, long_poll, stream, status_poll };

// One try of one call, for metrics.
struct CallReport {
  std::string_view target{};  // "/lock", "/renew"… without what follows a question mark
  std::string_view server{};
  int status = 0;   // of HTTP; 0: no answer
  int attempt = 1;  // from 1; more: it was tried before
  std::chrono::microseconds took{0};
};

struct ClientSettings {
  // "http://HOST:PORT", "https://…" or "unix:PATH". Several: the one that leads is found and followed.
  std::vector<std::string> servers = {"http://127.0.0.1:8086"};
  std::string node_id{};  // the name of this node; empty: the host's name
  // For servers that require a credential: the secret itself, or a file whose first line it is. The file is
  // read again when it changes, and so are the certificates.
  std::string credential{}, credential_file{};
  // A credential is sent over https, over a unix socket and to this machine; over plain http to another
  // machine only if this is set.
  bool insecure_credential = false;
  std::string ca_file{}, certificate_file{}, key_file{};  // for https; empty: the system's, none, none

  // The short client: calls that are answered at once.
  std::chrono::milliseconds request_timeout{5'000};
  int max_retries = 5;                            // after the first try; each asks all servers once
  std::chrono::milliseconds retry_interval{100};  // doubled each time up to 2 s, with jitter
  // While no server leads: how long a call keeps asking, whatever max_retries says.
  std::chrono::milliseconds hand_over{15'000};

  // The long client: calls that stay open.
  WaitBy wait_by = WaitBy::automatic;
  std::chrono::milliseconds long_poll{30'000};  // how long one long poll is kept open
  std::chrono::milliseconds heartbeat{10'000};  // the server's; a stream silent for two of them is given up
  std::chrono::milliseconds status_interval{500};

  // For metrics and logs. Called by any thread that makes a call: be brief, throw nothing, and do not call
  // the client.
  std::function<void(const CallReport&)> on_call{};       // after every try
  std::function<void(const std::string& line)> on_log{};  // for people: tries that failed, and why
  // For people, important: the credential or a certificate has changed, or cannot be read any more.
  std::function<void(const std::string& line)> on_notice{};
};

// From the environment: TURNSTILE_SERVER (several with commas), _NODE, _CA, _CERT, _KEY, _CREDENTIAL_FILE and
// _CREDENTIAL. What is not set stays as it is above.
TURNSTILE_API ClientSettings settings_from_environment();

}  // namespace v1
}  // namespace turnstile
