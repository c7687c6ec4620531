// What a success left for those who skip (S39), while anybody may still be told.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/plant.h"

namespace turnstile {

// An immutable text that a completion and all who skip by it share, and that is counted as long as one of
// them has it: results are the one thing of a lane that its user fills with kilobytes and keeps for days.
//
// Threads: owners may live in different threads; one owner is for one thread at a time.
class KeptResult {
 public:
  KeptResult() = default;
  // `bytes`: of all results together; must outlive every copy.
  KeptResult(std::string_view text, std::atomic<uint64_t>& bytes) {
    if (!text.empty()) block_ = std::make_shared<const Block>(text, bytes);
  }

  std::string_view view() const { return block_ ? std::string_view(block_->text) : std::string_view(); }
  operator std::string_view() const { return view(); }
  bool empty() const { return !block_; }
  bool same_as(const KeptResult& other) const { return block_ == other.block_; }

 private:
  struct Block {
    Block(std::string_view from, std::atomic<uint64_t>& counted) : text(from), bytes(counted) {
      bytes.fetch_add(text.size(), std::memory_order_relaxed);
    }
    ~Block() {
      if (!planted(Plant::results_never_freed)) bytes.fetch_sub(text.size(), std::memory_order_relaxed);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    const std::string text;
    std::atomic<uint64_t>& bytes;
  };
  std::shared_ptr<const Block> block_;
};

}  // namespace turnstile
