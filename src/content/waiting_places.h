// Places in the server's queues that are kept while containerd comes and goes.
//
// containerd is told "not now" at once and asks again within two seconds. In between a thread waits here for
// this node's turn, so that the place is not lost and the turn is known as soon as somebody asks.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/sync.h"
#include "content/digest.h"
#include "content/lock_server.h"

namespace turnstile::content {

// One waiting thread for each blob.
//
// Threads: any; sweep() by one. Time: a turn that came and that nobody takes within `for_taking` is passed
// on; a place that nobody asks about for `for_asking` is given up. Bounded: `most` places.
class WaitingPlaces {
 public:
  using Clock = std::chrono::steady_clock;
  // Of something that runs: when the last copy goes, its end is waited for.
  using Thread = std::shared_ptr<void>;
  static Thread start_thread(std::function<void()> body);  // throws std::system_error
  struct Options {
    std::chrono::milliseconds for_taking{10'000}, for_asking{15'000};
    size_t most = 256;
    // A simulation has its own.
    std::function<Clock::time_point()> now = [] { return Clock::now(); };
    std::function<Thread(std::function<void()>)> start = start_thread;
  };
  WaitingPlaces(LockServer& server, Options options) : server_(server), options_(std::move(options)) {}
  ~WaitingPlaces() { leave_all(); }

  struct Turn {
    bool waiting = false;  // still
    // How the wait ended; none: there is no place. It is taken out, and the place is gone.
    std::optional<Expected<Grant>> result;
    std::string request_id;  // by which the server knows the place
    std::string life;        // as it was given to keep()
    std::string why;         // with waiting
  };
  Turn ask(const Digest& digest) TS_EXCLUDES(mutex_);
  // `request` is in the queue of a server that was in this life when it was asked. False: there are too many,
  // or one for this blob; then the caller gives it up.
  bool keep(const Digest& digest, LockRequest request, std::string why, std::string life) TS_EXCLUDES(mutex_);
  bool has(const Digest& digest) const TS_EXCLUDES(mutex_);
  void sweep() TS_EXCLUDES(mutex_);
  // Takes no more, and waits until all threads have ended.
  void leave_all() TS_EXCLUDES(mutex_);

 private:
  struct Place {
    LockRequest request;
    std::string why, life;
    Clock::time_point asked, ended;
    std::optional<Expected<Grant>> result;
    std::stop_source stop;
    Thread thread;  // last: it uses the others
  };
  using Places = std::map<Digest, std::unique_ptr<Place>>;

  void wait(Place& place) TS_EXCLUDES(mutex_);
  static void pass_on(std::unique_ptr<Place> place);

  LockServer& server_;
  const Options options_;
  mutable Mutex mutex_;
  Places places_ TS_GUARDED_BY(mutex_);
  bool leaving_ TS_GUARDED_BY(mutex_) = false;
};

}  // namespace turnstile::content
