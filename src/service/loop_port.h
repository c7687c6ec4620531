// How a Service reaches the loops that its callers are connected to: the edge between the state and the
// wires.
//
// The server's loops are behind it, and a simulation's could be: nothing here knows of sockets.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "events/router.h"
#include "service/mailbox.h"

namespace turnstile {

// Threads: post() by any; the others are called on the loop's thread only, from tasks given to post().
class LoopPort {
 public:
  virtual ~LoopPort() = default;
  // Runs `task` on the loop's thread, soon.
  virtual void post(std::function<void()> task) = 0;
  virtual void answer_poll(const PollAnswer& answer) = 0;
  virtual void send_events(const std::vector<Delivery>& deliveries) = 0;
  // What waits behind a gate up to this sequence may ask again.
  virtual void open_gate(uint64_t sequence) = 0;
  // A few times a second, if it wants_ticks(), which any thread may ask.
  virtual void tick() = 0;
  virtual bool wants_ticks() const = 0;
};

// The loop that a poll or bond belongs to is in the upper 8 bits of its id, as in those of connections.
constexpr unsigned loop_of(PollId poll) { return unsigned(uint64_t(poll) >> 56); }

// What a Service and one loop share. Tasks that wait in the loop keep it alive and find it `ended` when the
// Service has gone meanwhile: what it still had to say concerns nobody any more.
struct LoopLink {
  LoopPort* port = nullptr;
  std::atomic<bool> ended{false};
  Mailbox mailbox;
  std::atomic<uint64_t> awaited{0};  // its answers wait for so much to be durable; 0: none does
  std::atomic<bool> told{false};     // a task that tells it is under way
};

using LoopLinks = std::vector<std::shared_ptr<LoopLink>>;

// Runs `task(port)` on the loop's thread, unless the Service has ended by then.
template <class Task>
void post(const std::shared_ptr<LoopLink>& link, Task task) {
  link->port->post([link, task = std::move(task)] {
    if (!link->ended.load(std::memory_order_acquire)) task(*link->port);
  });
}

}  // namespace turnstile
