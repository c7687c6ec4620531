// Without a lock server: this node does what it wants, in its own root.
#pragma once

#include "content/arbiter.h"

namespace turnstile::content {

// Always yes. Two nodes that run like this over one directory each download for themselves, which is wasteful
// but safe: a blob is published whole or not at all. A removal is of this node's own root only, and there may
// take away what another node has adopted: so share roots only with a server.
// Threads: any; no state.
class AloneArbiter final : public Arbiter {
 public:
  Decision begin_write(const Digest&, int64_t) override {
    return {Decision::Kind::write, std::make_unique<Nothing>(), {}};
  }
  Decision begin_adoption(const Digest&) override {
    return {Decision::Kind::adopt, std::make_unique<Nothing>(), {}};
  }
  Removal forget(const Digest&) override { return {Removal::Kind::remove_own, std::make_unique<Nothing>()}; }
  void resume(const std::vector<Digest>&) override {}

 private:
  class Nothing final : public Ticket {
   public:
    void progress(int64_t, int64_t) override {}
    bool still_valid() override { return true; }
    void succeeded() override {}
    void failed(const std::string&) override {}
  };
};

}  // namespace turnstile::content
