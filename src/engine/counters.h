// The numbers that all resources of a server share: tokens, tickets, and how much there is of what is
// limited.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/types.h"

namespace turnstile {

// Threads: any; tokens and tickets only grow.
struct Counters {
  // A token_mark record is made for each block, before a token of it can be seen; a restart goes on above the
  // mark.
  static constexpr uint64_t kTokenBlock = 1 << 16;

  std::atomic<uint64_t> tokens{0};  // the last one used
  std::atomic<uint64_t> tickets{0};
  std::atomic<uint64_t> references{0};    // of all resources
  std::atomic<uint64_t> waiters{0};       // in all queues
  std::atomic<uint64_t> result_bytes{0};  // see KeptResult

  void raise_tokens(uint64_t used) { raise(tokens, used); }
  void raise_tickets(uint64_t used) { raise(tickets, used); }

 private:
  static void raise(std::atomic<uint64_t>& counter, uint64_t to) {
    uint64_t now = counter.load();
    while (now < to && !counter.compare_exchange_weak(now, to)) {
    }
  }
};

}  // namespace turnstile
