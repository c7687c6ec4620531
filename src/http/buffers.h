// The two byte buffers of a connection: what has come in and is not handled, what is to go out and is not
// sent.
//
// Both are plain arrays of our own, because the hot path must not allocate, must not zero what it is going to
// overwrite, and must know when bytes may be moved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "http/http.h"

namespace turnstile::http {

// Bytes read and not yet handled. Behind its capacity lie kBodyPadding more readable bytes.
//
// Invariant: begin_ <= end_ <= capacity_. Only prepare() moves bytes or changes the block, so that a read
// under way into tail() and views into data() stay valid until then.
class InBuffer {
 public:
  static constexpr size_t kStart = 4096;

  char* data() { return block_.get() + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  size_t capacity() const { return capacity_; }
  std::string_view view() const { return {block_.get() + begin_, size()}; }

  char* tail() { return block_.get() + end_; }
  size_t room() const { return capacity_ - end_; }
  void commit(size_t count) { end_ += count; }
  void consume(size_t count) { begin_ += count; }
  void clear() { begin_ = end_; }
  // Takes out the bytes [from, to), counted from data().
  void cut(size_t from, size_t to) {
    std::memmove(data() + from, data() + to, size() - to);
    end_ -= to - from;
  }

  // Makes room for a read: empty again, small again; else to the front; else, up to `limit` bytes in all,
  // larger.
  void prepare(size_t limit) {
    if (empty()) {
      begin_ = end_ = 0;
      if (capacity_ != kStart) replace(kStart);
    } else if (room() == 0 && begin_ > 0) {
      std::memmove(block_.get(), data(), size());
      end_ -= begin_;
      begin_ = 0;
    }
    if (room() == 0 && capacity_ < limit) replace(next_capacity(limit));
  }
  // How large prepare() would make it.
  size_t next_capacity(size_t limit) const {
    if (empty()) return kStart;
    return room() == 0 && begin_ == 0 && capacity_ < limit ? std::min(4 * capacity_, limit) : capacity_;
  }

 private:
  void replace(size_t capacity) {
    std::unique_ptr<char[]> block(new char[capacity + kBodyPadding]);
    if (size() > 0) std::memcpy(block.get(), data(), size());
    end_ = size();
    begin_ = 0;
    capacity_ = capacity;
    block_ = std::move(block);
  }

  std::unique_ptr<char[]> block_;
  size_t begin_ = 0, end_ = 0, capacity_ = 0;
};

// Bytes to send, and the receipts that go with them. A connection has one only while it has something to
// send; the loop keeps the spare ones.
class OutBuffer {
 public:
  std::vector<Receipt> receipts;

  std::string_view view() const { return {block_.get() + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return begin_ == end_; }
  void consume(size_t count) { begin_ += count; }
  void clear() { begin_ = end_ = 0; }

  // Room for `count` bytes more; what is written there counts after commit().
  char* reserve(size_t count) {
    if (capacity_ - end_ < count) grow(count);
    return block_.get() + end_;
  }
  void commit(const char* end) { end_ = size_t(end - block_.get()); }
  void append(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(reserve(bytes.size()), bytes.data(), bytes.size());
    end_ += bytes.size();
  }

 private:
  void grow(size_t count) {
    const size_t capacity = std::max({size_t(2048), 2 * capacity_, size() + count});
    std::unique_ptr<char[]> block(new char[capacity]);
    if (!empty()) std::memcpy(block.get(), block_.get() + begin_, size());
    end_ = size();
    begin_ = 0;
    capacity_ = capacity;
    block_ = std::move(block);
  }

  std::unique_ptr<char[]> block_;
  size_t begin_ = 0, end_ = 0, capacity_ = 0;
};

}  // namespace turnstile::http
