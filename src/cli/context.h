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
  std::vector<std::string> servers;  // empty: as the settings file says, or on this machine
  std::string ca, cert, key, credential_file, node, config;
  std::string credential;  // the secret itself, by the environment only
  bool insecure_credential = false;
  // Why the settings file was not read. It ends whoever asks for settings() or a client(): what needs no
  // server does without it.
  std::string settings_fault;
  Output output = Output::text;
  std::vector<std::string> command;  // exec: what stands behind "--"
  std::function<int()> run;

  // Fills what the words have not said from the environment and the settings file. The secret is taken out of
  // our own environment, so that no command that we start has it.
  void complete();

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
