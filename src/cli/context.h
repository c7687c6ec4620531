// What every command shares: the global options and the way to a client.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/format.h"
#include "turnstile/lock_client.h"

namespace turnstile::cli {

// Parsing fills it and chooses `run`; nothing is done before all of the command line is known to be right.
// Threads: one.
struct Context {
  std::vector<std::string> servers = {"http://127.0.0.1:8086"};
  std::string token_file, node;
  Output output = Output::text;
  std::vector<std::string> command;  // exec: what stands behind "--"
  std::function<int()> run;

  bool json() const { return output == Output::json; }
  // `retries`: how stubbornly a server that does not answer is asked again.
  Expected<ClientSettings> settings(int retries) const;
  Expected<LockClient> client(int retries = kFewRetries) const;

  int fail(const ClientError& error) const { return report(output, error); }

  static constexpr int kFewRetries = 2;   // a person waits for the answer
  static constexpr int kManyRetries = 5;  // somebody's work hangs on it
};

struct Lane {
  std::string type, resource;
};

}  // namespace turnstile::cli
