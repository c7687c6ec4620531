// See stream.h.
#include "rpc/stream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace turnstile::rpc {

bool Stream::wait_to_read(std::chrono::milliseconds time) {
  const Locked lock(mutex_);
  return changed_.wait_for(mutex_, time, [this]() TS_NO_ANALYSIS { return can_read(); });
}

bool Stream::read(std::string& message) {
  bool grant = false;
  {
    const Locked lock(mutex_);
    changed_.wait(mutex_, [this]() TS_NO_ANALYSIS { return can_read(); });
    if (inbox_.empty() || cancelled_) return false;
    std::swap(message, inbox_.front());
    if (inbox_.front().capacity() > spare_.capacity()) spare_ = std::move(inbox_.front());
    inbox_.pop_front();
    grant = inbox_.empty() && ungranted_ > 0;
  }
  if (grant) something_to_do_();
  return true;
}

bool Stream::write(Message message) {
  const std::array<char, kPrefixSize> prefix = prefix_of(message.head.size() + message.data_size);
  message.head.insert(0, prefix.data(), prefix.size());
  bool first = false;
  {
    const Locked lock(mutex_);
    if (!at_once_)
      changed_.wait(mutex_, [this]() TS_NO_ANALYSIS { return outbox_bytes_ < kMaxUnsent || cancelled_; });
    if (cancelled_) return false;
    first = outbox_bytes_ == 0;
    outbox_bytes_ += message.head.size() + message.data_size;
    put(std::move(message));
  }
  if (first && !at_once_) something_to_do_();  // else the loop knows, and has not come to the end
  return true;
}

void Stream::put(Message message) {
  if (!outbox_.empty() && !outbox_.back().owner && outbox_.back().size < kShared) {
    outbox_.back().copied += message.head;  // many small messages are few parts
    outbox_.back().size += message.head.size();
  } else {
    const size_t size = message.head.size();
    outbox_.push_back({nullptr, std::move(message.head), nullptr, size});
  }
  if (message.data_size > 0) outbox_.push_back({message.data, {}, message.data.get(), message.data_size});
}

void Stream::finish(Status status) {
  {
    const Locked lock(mutex_);
    status_ = std::move(status);
  }
  if (!at_once_) something_to_do_();
}

std::optional<Status> Stream::take(std::string_view bytes, size_t& granted) {
  granted = 0;
  const Locked lock(mutex_);
  if (spare_.capacity() > bytes.size()) reader_.recycle(std::exchange(spare_, {}));
  (inbox_.empty() ? granted : ungranted_) += bytes.size();
  while (std::optional<std::string> message = reader_.next(bytes)) {
    inbox_.push_back(std::move(*message));
    changed_.notify_all();
  }
  return reader_.error();
}

void Stream::end_of_request() {
  const Locked lock(mutex_);
  request_ended_ = true;
  changed_.notify_all();
}

const std::string* Stream::first_message() const {
  const Locked lock(mutex_);
  return inbox_.empty() ? nullptr : &inbox_.front();
}

size_t Stream::take_grant() {
  const Locked lock(mutex_);
  return inbox_.empty() ? std::exchange(ungranted_, 0) : 0;
}

void Stream::cancel() {
  const Locked lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

Sendable Stream::sendable() const {
  const Locked lock(mutex_);
  return {outbox_bytes_, status_.has_value()};
}

void Stream::send(size_t size, Outgoing& to) {
  const Locked lock(mutex_);
  TS_CHECK(size <= outbox_bytes_, "only what is there is sent");
  outbox_bytes_ -= size;
  while (size > 0) {
    Part& part = outbox_.front();
    const size_t taken = std::min(size, part.size - front_sent_);
    if (part.owner)
      to.add(part.owner, {part.data + front_sent_, taken});
    else
      to.add(std::string_view(part.copied).substr(front_sent_, taken));
    front_sent_ += taken;
    size -= taken;
    if (front_sent_ == part.size) {
      outbox_.pop_front();
      front_sent_ = 0;
    }
  }
  changed_.notify_all();
}

Status Stream::status() const {
  const Locked lock(mutex_);
  TS_CHECK(status_.has_value(), "a status is asked for when there is one");
  return *status_;
}

}  // namespace turnstile::rpc
