// What waits to be written to one event stream.
#pragma once

#include <sys/uio.h>

#include <array>
#include <charconv>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace turnstile::http {

// Shared strings in order, the first perhaps sent in part. Shared, because a thousand streams send the same
// event; so what frames them (Transfer-Encoding: chunked, for HTTP/1.1) lies beside them: all that is queued
// when a write begins is one chunk, and what comes before it is written waits for the next.
//
// Invariant: bytes() is the sum of the strings' bytes not sent; no empty string is queued, because an empty
// chunk would end the stream. chunk_ counts the strings at the front that head_ has announced.
class StreamQueue {
 public:
  explicit StreamQueue(bool chunked) : chunked_(chunked) {}

  bool empty() const { return queue_.empty() && frame_size() == 0 && !owes_end_; }
  size_t bytes() const { return bytes_; }

  void push(std::shared_ptr<const std::string> text) {
    if (text->empty()) return;
    bytes_ += text->size();
    queue_.push_back(std::move(text));
  }

  // Nothing will follow: the reader is to know that this is the end and not a broken connection.
  void end() { owes_end_ = !std::exchange(ended_, true) && chunked_; }

  // Fills at most `room` parts (3 or more) for one gathered write; returns how many.
  size_t gather(iovec* parts, size_t room) {
    if (chunk_ == 0 && frame_size() == 0) begin_chunk();
    size_t count = 0;
    const auto add = [&](const char* data, size_t size) {
      if (size > 0) parts[count++] = {const_cast<char*>(data), size};
    };
    add(head_.data() + head_sent_, size_t(head_size_ - head_sent_));
    size_t texts = 0;
    for (; texts < chunk_ && count < room - 1; ++texts) {
      const size_t skip = texts == 0 ? sent_of_first_ : 0;
      add(queue_[texts]->data() + skip, queue_[texts]->size() - skip);
    }
    if (texts == chunk_) add(kLineEnd.data() + kLineEnd.size() - tail_left_, tail_left_);
    return count;
  }

  // So many bytes of what gather() gave are sent.
  void consume(size_t count) {
    const size_t of_head = std::min(count, size_t(head_size_ - head_sent_));
    head_sent_ += uint8_t(of_head);
    count -= of_head;
    while (chunk_ > 0) {
      const size_t left = queue_.front()->size() - sent_of_first_;
      const size_t of_text = std::min(count, left);
      bytes_ -= of_text;
      count -= of_text;
      sent_of_first_ += of_text;
      if (of_text < left) return;
      queue_.pop_front();
      sent_of_first_ = 0;
      --chunk_;
    }
    tail_left_ -= uint8_t(count);
  }

 private:
  static constexpr std::string_view kLineEnd = "\r\n";
  static constexpr std::string_view kLastChunk = "0\r\n\r\n";

  size_t frame_size() const { return size_t(head_size_ - head_sent_) + tail_left_; }

  void begin_chunk() {
    chunk_ = queue_.size();
    head_size_ = head_sent_ = 0;
    if (!chunked_) return;
    if (chunk_ > 0) {
      char* const end = std::to_chars(head_.data(), head_.data() + head_.size() - 2, bytes_, 16).ptr;
      std::memcpy(end, kLineEnd.data(), kLineEnd.size());
      head_size_ = uint8_t(end + kLineEnd.size() - head_.data());
      tail_left_ = uint8_t(kLineEnd.size());
    } else if (owes_end_) {
      owes_end_ = false;
      std::memcpy(head_.data(), kLastChunk.data(), kLastChunk.size());
      head_size_ = uint8_t(kLastChunk.size());
    }
  }

  std::deque<std::shared_ptr<const std::string>> queue_;
  size_t bytes_ = 0;
  size_t sent_of_first_ = 0;
  size_t chunk_ = 0;
  const bool chunked_;
  bool ended_ = false, owes_end_ = false;
  uint8_t head_size_ = 0, head_sent_ = 0, tail_left_ = 0;  // of head_, and of the line end behind the strings
  std::array<char, 18> head_;  // the size of the chunk under way, or the last chunk
};

}  // namespace turnstile::http
