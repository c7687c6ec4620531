// Passes what a standby is asked on to the leader (--standby forward), for load balancers, and for clients
// that do not follow a redirect.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/sync.h"
#include "base/time.h"

namespace turnstile {

// Who leads, as far as this server knows.
struct KnownLeader {
  std::string url;   // empty: nobody, or this server itself
  int64_t term = 0;  // the last one that was heard of
};

// One request on its way to the leader and back.
struct Forwarding {
  std::string method, target, body, authorization;
  bool waits = false;             // it may be answered much later: a long poll
  std::function<void()> on_done;  // on the forwarder's thread, when what follows is set
  unsigned status = 0;
  std::string content_type, headers, answer;

  // Whoever asked has gone: the leader is to see that.
  void abandon() { abandoned.store(true); }
  // This server stops: the leader has a second to answer, and then the outcome is not known.
  void hurry() { hurried.store(true); }
  std::atomic<bool> abandoned{false}, hurried{false};
};

// Threads, each with a connection of its own that stays open: simple, and bounded. They are made when they
// are needed. A quarter is left to calls that do not wait. A leader that falls silent is waited for until
// another term is seen, or nobody has led for as long as a lease: then whoever asked is told that the outcome
// is not known.
//
// Threads: take() by any; on_done on one of its own.
class Forwarder {
 public:
  static constexpr unsigned kThreads = 256, kMostWaiting = kThreads / 4 * 3;

  // `leader`: as of now; by any thread. `lease`: a leader's. `ca`: who signs its certificate; empty: the
  // system's.
  Forwarder(std::function<KnownLeader()> leader, Duration lease, std::string ca);
  ~Forwarder();

  // False: as many as may are under way.
  bool take(std::shared_ptr<Forwarding> forwarding) TS_EXCLUDES(mutex_);

 private:
  bool add_thread() TS_REQUIRES(mutex_);
  void run(const std::stop_token& stop);
  std::shared_ptr<Forwarding> next(const std::stop_token& stop) TS_EXCLUDES(mutex_);

  void pass_on(void* curl, Forwarding& forwarding);

  const std::function<KnownLeader()> leader_;
  const Duration lease_;
  const std::string ca_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<Forwarding>> waiting_ TS_GUARDED_BY(mutex_);
  unsigned busy_ TS_GUARDED_BY(mutex_) = 0;
  unsigned long_polls_ TS_GUARDED_BY(mutex_) = 0;  // of what is under way
  std::vector<std::jthread> threads_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
