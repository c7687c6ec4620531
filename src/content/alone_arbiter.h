// Without a lock server: this node does what it wants, in its own root.
#pragma once

#include "content/arbiter.h"

namespace turnstile::content {

// Always yes. Two nodes that run like this over one directory each download for themselves, which is wasteful
// but safe: a blob is published whole or not at all, and a removal spares what has a second name. Where the
// file system knows no hard links, share roots only with a server.
// Threads: any; no state.
class AloneArbiter final : public Arbiter {
 public:
  Decision begin_write(const Digest&, int64_t) override {
    return {Decision::Kind::write, std::make_unique<Nothing>()};
  }
  Decision begin_adoption(const Digest&) override {
    return {Decision::Kind::adopt, std::make_unique<Nothing>()};
  }
  Removal end_use(const Digest&, bool) override {
    return {Removal::Kind::remove_own, std::make_unique<Nothing>(), true, {}};
  }
  std::vector<bool> confirm_uses(const std::vector<Digest>& used) override {
    return std::vector<bool>(used.size(), true);
  }

 private:
  class Nothing final : public Ticket {
   public:
    void progress(int64_t, int64_t) override {}
    bool still_valid() override { return true; }
    bool succeeded() override { return true; }
    void failed(const std::string&) override {}
  };
};

}  // namespace turnstile::content
