// What happens by itself, without a request: things run out, and the journal gets a snapshot.
#pragma once

#include <thread>

namespace turnstile {

class Service;

// Two threads: one looks every few milliseconds for what has run out; the other takes snapshots, which can be
// slow.
//
// Not its job: deciding what running out means; the engine does.
// Threads: two of its own, from construction to destruction, which does not wait for a snapshot to be finished.
class Housekeeper {
 public:
  explicit Housekeeper(Service& service);

 private:
  void expire(const std::stop_token& stop);
  void take_snapshots(const std::stop_token& stop);

  Service& service_;
  std::jthread expirer_, snapshooter_;
};

}  // namespace turnstile
