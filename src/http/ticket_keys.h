// The keys that session tickets are sealed with, and when they change.
//
// A file of its own, because left alone OpenSSL keeps one key for as long as it has the certificate: whoever
// got it could read every TLS 1.2 connection that has been resumed since, forward secrecy or not.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/sync.h"

struct ssl_ctx_st;

namespace turnstile::http {

// Not its job: what a ticket says, or how long it is good. Threads: any.
// Time: reads its clock when a ticket is made or shown, and keys change then. A server that nobody greets
// keeps its last two. Invariant: a ticket can be opened for at least kLife, because the key that sealed
// before is kept.
class TicketKeys {
 public:
  // So long a key seals; then it only opens, for as long again.
  static constexpr Duration kLife = std::chrono::minutes(10);

  struct Key {
    std::array<unsigned char, 16> name;
    std::array<unsigned char, 32> cipher, mac;
    Time made;
    ~Key();
  };
  struct Found {
    Key key;
    bool seals;  // false: a ticket of the newest key should follow
  };

  // Gives a context keys of its own, which go with it. False: no memory.
  static bool install(ssl_ctx_st* context, const TimeSource& source);

  explicit TicketKeys(const TimeSource& source) : clock_(Time{}, source) {}
  // The key to seal with. Nothing: there is no randomness.
  std::optional<Key> newest();
  // The key of that name, unless its time is over.
  std::optional<Found> find(std::span<const unsigned char, 16> name);

 private:
  void change_if_due(Time now) TS_REQUIRES(mutex_);

  const Clock clock_;
  Mutex mutex_;
  std::optional<Key> newest_ TS_GUARDED_BY(mutex_), before_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::http
