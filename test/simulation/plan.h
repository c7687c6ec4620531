// What the clients and the weather of a history do, decided beforehand by its seed, so that a history that
// goes wrong can be played again without the moves that do not matter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
};

struct Plan {
  uint64_t seed = 0;
  ServerSettings server;
  unsigned actors = 4;
  std::vector<Move> moves;
};

Plan make_plan(uint64_t seed);
std::string show(const Move& move);
std::string show(const ServerSettings& settings);

}  // namespace turnstile::sim
