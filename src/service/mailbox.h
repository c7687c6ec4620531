// Answers that one thread has for the connections of another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "base/time.h"
#include "engine/types.h"

namespace turnstile {

// The answer to a long poll, ready to be written.
struct PollAnswer {
  PollId poll = PollId::none;
  unsigned status = 200;
  std::string body;
  uint64_t sequence = 0;  // it may leave when so much is durable
  Token granted = Token::none;
  Time granted_at{};  // for the hand-over time
};

// A loop's letter box: many may put in, the loop takes out all at once. Ten thousand waiters that end in one
// step cost their loop one wake-up. Threads: any.
class Mailbox {
 public:
  // True: it was empty, and the loop must be told.
  bool put(PollAnswer answer) {
    const Locked lock(mutex_);
    answers_.push_back(std::move(answer));
    return answers_.size() == 1;
  }
  std::vector<PollAnswer> take_all() {
    const Locked lock(mutex_);
    return std::exchange(answers_, {});
  }

 private:
  Mutex mutex_;
  std::vector<PollAnswer> answers_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
