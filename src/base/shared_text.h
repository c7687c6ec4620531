// A string that many share: the error that a hundred thousand waiters ended with is kept once.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace turnstile {

// An immutable string in eight bytes; a copy is another owner of the same characters. Nothing when empty.
//
// Threads: owners may live in different threads; one owner is for one thread at a time.
class SharedText {
 public:
  SharedText() = default;
  explicit SharedText(std::string_view from) {
    if (from.empty()) return;
    block_ = new (::operator new(sizeof(Block) + from.size())) Block;
    block_->size = uint32_t(from.size());
    std::memcpy(reinterpret_cast<char*>(block_ + 1), from.data(), from.size());
  }
  SharedText(const SharedText& other) : block_(other.block_) {
    if (block_ != nullptr) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  SharedText(SharedText&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~SharedText() {
    if (block_ == nullptr || block_->owners.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    block_->~Block();
    ::operator delete(block_);
  }

  std::string_view view() const {
    if (block_ == nullptr) return {};
    return {reinterpret_cast<const char*>(block_ + 1), block_->size};
  }
  operator std::string_view() const { return view(); }
  bool empty() const { return block_ == nullptr; }
  // Whether both own the same characters, not only equal ones.
  bool same_as(const SharedText& other) const { return block_ == other.block_; }

 private:
  struct Block {
    std::atomic<uint32_t> owners{1};
    uint32_t size = 0;
    // the characters follow
  };
  Block* block_ = nullptr;
};

}  // namespace turnstile
