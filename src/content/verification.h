// Whether files hold the bytes that their names promise.
#pragma once

#include <condition_variable>
#include <functional>
#include <stop_token>
#include <vector>

#include "base/sync.h"
#include "content/blob_store.h"
#include "content/node_state.h"

namespace turnstile::content {

// Reads all of it. `pause` is called after each piece with its size, for readers that must not be in the way;
// false ends the reading (error unavailable).
Outcome<bool> is_intact(const OpenBlob& blob, const Digest& digest,
                        const std::function<bool(size_t bytes)>& pause = {});

// Keeps a reader to so many bytes a second, and lets it end when it is told to. Threads: one.
class Pace {
 public:
  // 0: as fast as it can. `seen` hears of every piece.
  explicit Pace(double bytes_per_second, std::stop_token stop = {},
                std::function<void(size_t bytes)> seen = {})
      : bytes_per_second_(bytes_per_second), stop_(std::move(stop)), seen_(std::move(seen)) {}
  // False, of both: it is to end.
  bool after(size_t bytes);
  bool wait(std::chrono::milliseconds time);

 private:
  using Clock = std::chrono::steady_clock;
  const double bytes_per_second_;
  const std::stop_token stop_;
  const std::function<void(size_t bytes)> seen_;
  Clock::time_point due_{};
  Mutex mutex_;
  std::condition_variable_any never_;
};

// What became of a blob that a node uses.
struct Finding {
  enum class Kind : uint8_t {
    intact,
    gone,         // no root has it
    unpublished,  // intact, but only under this node's own second name: others do not see it
    damaged,      // other bytes
    unreadable,   // not known: `why`
  };
  Digest digest;
  Kind kind = Kind::intact;
  std::string why{};
  OpenBlob seen{};  // of a damaged one
};

// Reads all of them, in this order, and calls `told` for each with what was found, except when it is stopped.
// What is not in sight is looked for once more at the end: another node's removal that is given up hides a
// blob for a moment. False: it was stopped.
bool verify_blobs(const BlobStore& blobs, const std::vector<BlobInfo>& infos, Pace& pace,
                  const std::function<void(Finding)>& told);

}  // namespace turnstile::content
