// What the clients and the weather of a history do, decided beforehand by its seed, so that a history that
// goes wrong can be played again without the moves that do not matter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/etcd_journal.h"
#include "sim_server.h"

namespace turnstile::sim {

enum class MoveKind : uint8_t {
  lock,
  unlock,
  renew,
  cancel,
  status,
  break_hold,
  forget,
  references,
  add_reference,
  release_reference,
  release_node,
  batch,
  list,
  subscribe,
  close,         // one of the actor's connections,
  stop_reading,  // ... of its streams
  go_on_reading,
  library,  // a lock() of libturnstile's, then work, then release()
  crash,
  pause,
  slow_disk,
  sync_fails,
  set_clock,
  change_life,
  // With several servers (replicated_plan.cc); `actor` is the server.
  server_crash,
  server_pause,
  cut,  // between a server and etcd
  etcd_stall,
  etcd_full,
  lease_ends,  // the leader's, long before its time
  hand_over,
  backup,   // of etcd
  restore,  // of that: all servers go down, and everything since is gone
};

enum class Which : uint8_t { right, none, stale };        // token
enum class How : uint8_t { success, failure, for_good };  // of an unlock
enum class Way : uint8_t { long_poll, stream, status_poll, automatic };

// Every kind looks at some of these.
struct Move {
  Duration at{};
  MoveKind kind{};
  unsigned actor = 0;
  std::string type, resource, scope;
  bool again = false;  // lock: in the name of the request before; else of a new one
  bool named = true;   // with a request_id; status and subscribe: with a node
  bool monitor = false, dereference = false, reset = false, progress = false;
  Which token = Which::right;
  How how = How::success;
  Way way = Way::long_poll;
  Duration lease{}, wait{}, time{};
  Duration keep{-1};    // unlock: how long the success counts; below 0: not said
  bool result = false;  // unlock: a text of its own for those who skip
  unsigned nth = 0;     // weather: not before the nth write of the log from then on, and just behind it
};

// What the servers of a history have in common, if there are several.
struct ReplicaWishes {
  unsigned servers = 0;  // 0: one, with a disk
  std::chrono::seconds lease{2};
  EtcdJournalOptions journal;
  unsigned etcd_errs_one_in = 60;
  bool etcd_is_late = false;
  std::vector<Duration> wall_skews;
  std::vector<double> clock_rates;
};

struct Plan {
  uint64_t seed = 0;
  ServerSettings server;
  ReplicaWishes replica;
  unsigned actors = 4;
  std::vector<Move> moves;
};

Plan make_plan(uint64_t seed);
// The same clients, more slowly, with several servers and an etcd.
Plan make_replicated_plan(uint64_t seed);
std::string show(const Move& move);
std::string show(const ServerSettings& settings);

}  // namespace turnstile::sim
