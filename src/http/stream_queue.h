// What waits to be written to one event stream.
#pragma once

#include <sys/uio.h>

#include <deque>
#include <memory>
#include <string>

namespace turnstile::http {

// Shared strings in order, the first perhaps sent in part. Shared, because a thousand streams send the same
// event.
//
// Invariant: bytes() is the sum of what is not sent; no empty string is queued.
class StreamQueue {
 public:
  bool empty() const { return queue_.empty(); }
  size_t bytes() const { return bytes_; }

  void push(std::shared_ptr<const std::string> text) {
    if (text->empty()) return;
    bytes_ += text->size();
    queue_.push_back(std::move(text));
  }

  // Fills at most `room` parts for one gathered write; returns how many.
  size_t gather(iovec* parts, size_t room) const {
    size_t count = 0;
    for (auto text = queue_.begin(); text != queue_.end() && count < room; ++text, ++count) {
      const size_t skip = count == 0 ? sent_of_first_ : 0;
      parts[count] = {const_cast<char*>((*text)->data()) + skip, (*text)->size() - skip};
    }
    return count;
  }

  void consume(size_t count) {
    bytes_ -= count;
    for (count += sent_of_first_; !queue_.empty() && count >= queue_.front()->size(); queue_.pop_front())
      count -= queue_.front()->size();
    sent_of_first_ = count;
  }

 private:
  std::deque<std::shared_ptr<const std::string>> queue_;
  size_t bytes_ = 0;
  size_t sent_of_first_ = 0;
};

}  // namespace turnstile::http
