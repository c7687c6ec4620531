// One call between its two sides: the loop, which knows HTTP/2, and the thread that runs the method.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>

#include "base/sync.h"
#include "rpc/message_reader.h"
#include "rpc/outgoing.h"

namespace turnstile::rpc {

// What the loop finds when it looks for something to send.
struct Sendable {
  size_t bytes = 0;
  bool finished = false;  // and nothing comes after them but the status
};

// Limits: while a complete message waits here for its method, the client is granted nothing; so it can have a
// window's worth of messages behind it, and no more (of empty ones that is seven times their bytes). Towards
// the client write() waits above kMaxUnsent bytes.
//
// Threads: wait_to_read(), read(), write() and finish() by the one that runs the method; all else by the
// loop.
class Stream final : public Call {
 public:
  // `something_to_do` is called, by the method's thread, when the loop should look again.
  Stream(int32_t id, size_t max_message, std::function<void()> something_to_do)
      : id_(id), something_to_do_(std::move(something_to_do)), reader_(max_message) {}

  bool wait_to_read(std::chrono::milliseconds time) override;
  bool read(std::string& message) override;
  bool write(Message message) override;
  void finish(Status status);

  int32_t id() const { return id_; }
  // The method runs on the loop now: its writes need not tell the loop.
  void set_at_once(bool at_once) { at_once_ = at_once; }

  // Bytes of the client's, and how many of them it may send again at once. An error ends the call.
  std::optional<Status> take(std::string_view bytes, size_t& granted);
  void end_of_request();
  bool in_the_middle() const { return reader_.in_the_middle(); }  // of a message
  // The message that read() would return now; none: it would wait, or return false.
  const std::string* first_message() const;
  // The rest of what take() has not granted, once its reason has gone.
  size_t take_grant();
  void cancel();

  Sendable sendable() const;
  // Hands out the next `size` bytes, which sendable() has told of.
  void send(size_t size, Outgoing& to);
  // Valid once finished.
  Status status() const;

  const Method* method = nullptr;
  bool answer_begun = false;  // the loop's: headers have left
  bool ended = false;         // the loop's: the status is on its way, and nothing comes after it

 private:
  static constexpr size_t kMaxUnsent = 2 << 20;
  static constexpr size_t kShared = 16 << 10;

  struct Part {
    std::shared_ptr<const char[]> owner;  // none: the bytes are copied
    std::string copied;
    const char* data = nullptr;
    size_t size = 0;
  };

  bool can_read() const TS_REQUIRES(mutex_) { return !inbox_.empty() || request_ended_ || cancelled_; }
  void put(Message message) TS_REQUIRES(mutex_);

  const int32_t id_;
  const std::function<void()> something_to_do_;
  MessageReader reader_;  // the loop's
  bool at_once_ = false;  // the loop's, and the method's while it runs there

  mutable Mutex mutex_;
  std::condition_variable_any changed_;  // for the method's thread
  std::deque<std::string> inbox_ TS_GUARDED_BY(mutex_);
  std::string spare_ TS_GUARDED_BY(mutex_);  // memory of a message that was read
  size_t ungranted_ TS_GUARDED_BY(mutex_) = 0;
  bool request_ended_ TS_GUARDED_BY(mutex_) = false, cancelled_ TS_GUARDED_BY(mutex_) = false;
  std::deque<Part> outbox_ TS_GUARDED_BY(mutex_);
  size_t outbox_bytes_ TS_GUARDED_BY(mutex_) = 0, front_sent_ TS_GUARDED_BY(mutex_) = 0;
  std::optional<Status> status_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::rpc
