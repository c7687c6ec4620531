// exec's command line, for the files that share it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/signals.h"

namespace turnstile::cli {

struct ExecOptions {
  Lane lane;
  std::optional<Milliseconds> wait, lease, timeout, keep;
  std::string scope, info;
  bool bond = false, quiet = false, print_result = false;
  int skip_code = 0;
  std::vector<int> permanent_exit_codes;

  // A command is ended well before its lease can be lost. With several servers, one of which may take over,
  // there must be time for that before.
  Milliseconds lease_or_default(bool several) const {
    return lease.value_or(Milliseconds(several ? 15'000 : 10'000));
  }
  std::string lane_text() const { return lane.type + " " + lane.resource; }
  bool is_once() const { return lane.type == operations::kOnce; }
  // How it is called: "exec TYPE RESOURCE".
  std::string words() const { return is_once() ? "once " + lane.resource : "exec " + lane_text(); }
};

struct ExecWait {
  Expected<LockResult> result;
  int signal = 0;       // that ended the wait; 0: none
  bool waited = false;  // somebody was before it
};

// Takes the lock, or waits for it, telling the person meanwhile how it stands.
ExecWait wait_for_turn(const Context& context, const ExecOptions& options, LockClient& client,
                       const Signals& signals);

}  // namespace turnstile::cli
