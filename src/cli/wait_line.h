// What a person sees while `exec` waits for its turn.
#pragma once

#include <chrono>
#include <condition_variable>
#include <optional>
#include <string>
#include <thread>

#include "base/sync.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "turnstile/lock_client.h"

namespace turnstile::cli {

// "waiting for pull sha256:4f5a: position 2, held by node-a for 3m 20s, 42% (1.2G of 2.9G); 12s"
std::string waiting_text(const std::string& lane, const WaitingStatus& status, WallTime now,
                         Milliseconds waited);

// On a terminal one line on stderr that is drawn anew every second; else one when the wait begins and one
// when it ends, and with json the same as objects.
// Threads: one of its own on a terminal; the members may be called by any.
class WaitLine {
 public:
  WaitLine(Output output, const std::string& lane, bool quiet = false);
  ~WaitLine();
  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;

  bool live() const { return live_; }  // whether it draws anew, and wants to be told what changes
  void update(const WaitingStatus& status);
  // How it ended: "acquired", "skipped"… Says nothing when there was no wait.
  void end(const std::string& outcome);

 private:
  void draw() TS_REQUIRES(mutex_);
  void erase();
  Milliseconds waited() const;

  const Output output_;
  const std::string lane_;
  const bool quiet_;  // says nothing at all
  const bool live_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Mutex mutex_;
  std::optional<WaitingStatus> status_ TS_GUARDED_BY(mutex_);
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace turnstile::cli
