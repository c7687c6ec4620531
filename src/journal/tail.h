// Where a log stops being readable: is that its end, a write that a crash interrupted, or damage?
//
// The one decision of the journal that can lose something acknowledged, hence a file of its own. What it
// rests on: a batch is written over zeros, only after all earlier ones were synced, and nobody is answered
// before it is synced itself. So an interrupted write is the last one, and some of its sectors are still zero
// or missing. A frame that is all there and yet wrong was complete once, perhaps acknowledged, and has been
// damaged since.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace turnstile {

enum class TailVerdict {
  end,      // nothing but zeros
  torn,     // an interrupted write, with nothing valid behind it
  damaged,  // something that had been complete, or has valid batches behind it
};

struct Tail {
  TailVerdict verdict{};
  std::string why;
};

// `bytes`: all of the file from `offset` on, where no good frame begins; batches before `next_batch` have
// been read.
Tail judge_tail(std::string_view bytes, uint64_t offset, uint64_t next_batch);

}  // namespace turnstile
