// What the lock server must still be told about this node's use of blobs, and the order in which that is
// done.
//
// A server may be away when a use begins or ends. Then the digest is written down here, and later the server
// is told what is true by then: this node uses it, or not. There are no orders to repeat, so none can be old.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sync.h"
#include "content/database.h"
#include "content/digest.h"

namespace turnstile::content {

// Digests about which the server has to be told, and who works on which one now.
//
// Two kinds of claim: any number of uses (a pull, an adoption, a place in the queue), or one settling, which
// tells the server. They exclude each other, so that a use that just begins cannot lose the reference that
// the server has given it. Threads: any. What is marked is on the disk when the call returns, except by
// mark_all(), which is for what the node's own database knows anyway.
class Unsettled : public std::enable_shared_from_this<Unsettled> {
 public:
  using Clock = std::chrono::steady_clock;

  static Outcome<std::shared_ptr<Unsettled>> open(const std::string& directory);

  class Claim {
   public:
    Claim() = default;
    Claim(Claim&&) noexcept = default;
    Claim& operator=(Claim&& other) noexcept {
      end();
      owner_ = std::move(other.owner_);
      digest_ = std::move(other.digest_);
      settling_ = other.settling_;
      settled_ = other.settled_;
      return *this;
    }
    ~Claim() { end(); }

    explicit operator bool() const { return owner_ != nullptr; }
    bool settling() const { return settling_; }
    // False: the server must be told, later. To begin with, a use leaves nothing to tell, a settling all.
    void set_settled(bool settled) { settled_ = settled; }

   private:
    friend class Unsettled;
    Claim(std::shared_ptr<Unsettled> owner, const Digest& digest, bool settling)
        : owner_(std::move(owner)), digest_(digest), settling_(settling), settled_(!settling) {}
    void end();

    std::shared_ptr<Unsettled> owner_;
    std::optional<Digest> digest_;
    bool settling_ = false, settled_ = true;
  };

  // Of nothing while the server is being told about it.
  Claim use(const Digest& digest) TS_EXCLUDES(mutex_);
  // Of nothing while it is in use, or being settled already.
  Claim settle(const Digest& digest) TS_EXCLUDES(mutex_);
  // One that is due and that nobody works on.
  std::optional<std::pair<Digest, Claim>> settle_next(Clock::time_point now) TS_EXCLUDES(mutex_);

  void mark(const Digest& digest) TS_EXCLUDES(mutex_);
  void mark_all(const std::vector<Digest>& digests) TS_EXCLUDES(mutex_);
  size_t count() const TS_EXCLUDES(mutex_);  // still to be told

 private:
  struct Entry {
    int uses = 0;
    bool settling = false;
    bool marked = false;
    bool stored = false;  // there is a row
    Clock::time_point due{};
  };

  explicit Unsettled(Database database) : database_(std::move(database)) {}
  Outcome<void> load() TS_EXCLUDES(mutex_);
  void end(const Digest& digest, bool settling, bool settled) TS_EXCLUDES(mutex_);
  void put_down(const Digest& digest, Entry& entry, Clock::time_point due) TS_REQUIRES(mutex_);
  void strike_out(const Digest& digest, Entry& entry) TS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Database database_ TS_GUARDED_BY(mutex_);
  std::map<Digest, Entry> entries_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::content
