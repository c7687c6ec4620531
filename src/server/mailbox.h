// Answers that one thread has for the connections of another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "base/time.h"
#include "http/http.h"

namespace turnstile {

// The answer to a long poll, ready to be written.
struct ReadyAnswer {
  http::ConnectionId connection{};
  unsigned status = 200;
  std::string body;
  uint64_t release = 0;
  Time granted_at{};  // for the hand-over time; zero: not a grant
};

// A loop's letter box: many may put in, the loop takes out all at once. Ten thousand waiters that end in one
// step cost their loop one wake-up. Threads: any.
class Mailbox {
 public:
  // True: it was empty, and the loop must be told.
  bool put(ReadyAnswer answer) {
    const Locked lock(mutex_);
    answers_.push_back(std::move(answer));
    return answers_.size() == 1;
  }
  std::vector<ReadyAnswer> take_all() {
    const Locked lock(mutex_);
    return std::exchange(answers_, {});
  }

 private:
  Mutex mutex_;
  std::vector<ReadyAnswer> answers_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
