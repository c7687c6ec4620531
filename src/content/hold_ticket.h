// Tickets whose right comes from the lock server.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "content/arbiter.h"
#include "content/lock_server.h"

namespace turnstile::content {

// Work under a hold: a pull, an adoption, or a removal.
class HoldTicket final : public Ticket {
 public:
  enum class Work : uint8_t {
    use,          // a success makes this node count
    use_counted,  // this node was counted before the work began; `is_counted` tells whether it still is
    removal,      // every doubt about the hold ends it
  };
  // `note` is told of every error.
  using Note = std::function<void(const ClientError&)>;
  HoldTicket(std::unique_ptr<ServerHold> hold, Work work, Note note, std::function<bool()> is_counted = {})
      : hold_(std::move(hold)), work_(work), note_(std::move(note)), is_counted_(std::move(is_counted)) {}
  ~HoldTicket() override { failed("abandoned"); }

  void progress(int64_t done, int64_t total) override;
  bool still_valid() override;  // false ends it
  bool succeeded() override;
  void failed(const std::string& why) override { (void)end(WorkResult::failed(why)); }

 private:
  bool end(const WorkResult& result);

  std::unique_ptr<ServerHold> hold_;  // none: ended
  const Work work_;
  const Note note_;
  const std::function<bool()> is_counted_;
};

// Work without a hold: what another node has finished, or what is done while there is no server.
class FreeTicket final : public Ticket {
 public:
  // `is_counted` is asked at the end: whether the server counts this node, as far as is known by then.
  explicit FreeTicket(std::function<bool()> is_counted) : is_counted_(std::move(is_counted)) {}

  void progress(int64_t, int64_t) override {}
  bool still_valid() override { return !ended_; }
  bool succeeded() override {
    const bool counted = !ended_ && is_counted_();
    ended_ = true;
    return counted;
  }
  void failed(const std::string&) override { ended_ = true; }

 private:
  const std::function<bool()> is_counted_;
  bool ended_ = false;
};

}  // namespace turnstile::content
