// What the program's exit codes mean, and the one line that goes with each that is no success. Scripts depend
// on the numbers: docs/cli.md has them, and they never change.
#pragma once

#include <string>
#include <string_view>

#include "turnstile/error.h"

namespace turnstile::cli {

enum ExitCode : int {
  kOk = 0,
  kUnexpected = 1,
  kUsage = 2,
  kSkipped = 10,          // the work has been done already
  kBusy = 11,             // another holds it, and the time to wait is over
  kRefused = 12,          // the rules say no
  kLost = 13,             // the hold is not ours, or not any more
  kUnavailable = 14,      // no server, or something else where one should be
  kUnauthenticated = 15,  // not logged in, or not allowed
  kSignalled = 128,       // plus the signal's number
};

ExitCode exit_code_of(ErrorCode code);

// For --help; the same table as in docs/cli.md.
std::string exit_code_help();

enum class Output { text, json };

// One line on stderr: "turnstile: …", or an object with `error`, `code` and `exit`. A message of several
// lines (a server's error text may be one) is made one. Returns `exit`.
int report(Output output, std::string_view message, std::string_view code, int exit);
// The same for a failed call, with what to do about it where its message does not say so.
int report(Output output, const ClientError& error);

}  // namespace turnstile::cli
