// What a server counts, for metrics; written by the loops, read by anybody.
#pragma once

#include <atomic>
#include <cstdint>

namespace turnstile::http {

struct Statistics {
  std::atomic<uint64_t> accepted{0};          // connections ever taken from a listener, refused ones too
  std::atomic<uint64_t> refused{0};           // because max_connections were open: told 429, or closed
  std::atomic<uint64_t> connections_open{0};  // handed to a loop and not closed yet, without refused ones
  std::atomic<uint64_t> connections_room{0};  // how many may be open: max_connections, or fewer that fit
  std::atomic<uint64_t> refused_open{0};      // those that are being told so
  std::atomic<uint64_t> streams_open{0};
  std::atomic<uint64_t> streams_cut{0};  // because their reader was too slow
  std::atomic<uint64_t> timed_out{
      0};  // requests answered 408, handshakes, and readers cut for taking nothing
  // TLS handshakes that are over:
  std::atomic<uint64_t> tls_full{0};
  std::atomic<uint64_t> tls_resumed{0};  // ... with a ticket
  std::atomic<uint64_t> tls_failed{0};
};

}  // namespace turnstile::http
