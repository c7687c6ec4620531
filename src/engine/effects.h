// What a step of the engine causes, apart from its answer: records for the journal, events for the streams,
// wakes for long polls, measures for the metrics.
#pragma once

#include <cstring>
#include <memory>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "engine/answer.h"
#include "engine/types.h"

namespace turnstile {

// One fact of a resource, set or erased. Facts are absolute, so that replaying a record twice is harmless,
// and a snapshot that was taken while the server worked is made right by the log that follows it.
enum class RecordKind : uint8_t {
  hold_set = 1,         // lane, node, request, number=token, since, until, lease, attempt, flags, text=info,
                        // error=previous, progress
  hold_erased = 2,      // lane
  waiter_set = 3,       // lane, number=ticket, node, request, since, lease, flags, text=info
  waiter_erased = 4,    // lane, number=ticket
  failures_set = 5,     // lane, attempt=failures so far, error=of the last
  failures_erased = 6,  // lane
  completion_set = 7,   // lane, node, error, since=when, until, flags, number=token, attempt: of the hold,
                        // result
  completion_erased = 8,  // lane
  released_set = 9,       // lane, node, number=token, until   (S15)
  ending_set = 10,        // lane, node, request, attempt=Ending, error, until, progress=token and attempt of
                          // the hold that ended it (S2); with a skip text=its node, since=when, result
  ending_erased = 11,     // lane, node, request
  reference_set = 12,     // resource, node
  reference_erased = 13,  // resource, node
  token_mark = 14,        // number: every token up to this one may have been used
  queue_ended = 15,       // lane, number=highest ticket, and the rest as ending_set: all waiters up to that
                          // ticket have ended so, which is remembered until then (a zero: not at all)
  endings_voided = 16,    // lane, number=a token: no skip that an earlier hold has left is remembered any
                          // more (S13). Without a number, as it was once written: none up to `until`
  event_mark = 17,        // number: the id of the latest event; the journal's own, for the event log (S28)
  life_mark = 18,         // number: the first event id of a life; the service's own, as is that of
                          // event_mark: an id that was told is never used again (S28)
};
inline constexpr RecordKind kLastRecordKind = RecordKind::life_mark;  // they are numbered without gaps

// Bits of Record::flags.
inline constexpr uint8_t kFlagResourceScope = 1, kFlagMonitor = 2, kFlagUnclaimed = 4, kFlagDereference = 8,
                         kFlagBonded = 16, kFlagSuccess = 32, kFlagPermanent = 64, kFlagProgress = 128;

struct Record {
  RecordKind kind{};
  uint8_t flags = 0;
  uint32_t attempt = 0;
  LaneName lane;
  Requester who;
  uint64_t number = 0;
  Time since{};
  Time until{};
  Duration lease{};
  Progress progress;
  std::string_view text;  // info
  std::string_view error;
  std::string_view result;
};

enum class EventKind : uint8_t { granted, completed, failed, expired, broken, cancelled, refused };

struct Event {
  EventKind kind{};
  LaneName lane;
  Requester who;
  Time at{};
  Token token = Token::none;
  uint32_t attempt = 0;
  bool permanent = false;
  std::string_view error;   // what a seeds' client reads; for expired and broken the reason
  std::string_view reason;  // lease, max_hold, stall, unclaimed, bond, cancelled, or an admin's words
  std::string_view result;  // with completed (S39)
};

// The answer to a long poll that was left open.
struct Wake {
  PollId poll = PollId::none;
  LockAnswer answer;
};

// For the metrics. `operation` is one of the configured ones, or empty: names of the user's own are not
// counted apart.
enum class MeasureKind : uint8_t {
  granted,  // time: how long it waited (0: at once)
  ended,    // time: how long it was held
  queued,
  left_queue,  // by whatever outcome
  skipped,
  refused,
};

struct Measure {
  MeasureKind kind{};
  std::string_view operation;
  Duration time{};
  uint32_t count = 1;
};

// Filled by one call, read by its caller, cleared for the next. One for each thread, so that its memory is
// reused.
class Effects {
 public:
  Effects() : arena_(buffer_, sizeof buffer_) {}
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  std::vector<Record> records;
  std::vector<Event> events;
  std::vector<Wake> wakes;
  std::vector<Measure> measures;
  Time at{};  // of the step
  // The answer and all of the above may leave when this much is durable; from the commit sink.
  uint64_t sequence = 0;
  // Set by the commit sink: what it wants to hear of when the answer has been written (S30).
  uint64_t step = 0;
  // Some whose waits have ended are not told yet: Engine::go_on() does, soon.
  bool unfinished = false;

  void clear() {
    records.clear();
    events.clear();
    wakes.clear();
    measures.clear();
    sequence = 0;
    step = 0;
    unfinished = false;
    arena_.release();
  }

  // A copy of `text` that lives until clear().
  std::string_view keep(std::string_view text) {
    if (text.empty()) return {};
    char* copy = static_cast<char*>(arena_.allocate(text.size(), 1));
    std::memcpy(copy, text.data(), text.size());
    return {copy, text.size()};
  }

  // Room for `count` views, which lives until clear().
  std::span<std::string_view> keep_views(size_t count) {
    if (count == 0) return {};
    auto* views = static_cast<std::string_view*>(
        arena_.allocate(count * sizeof(std::string_view), alignof(std::string_view)));
    std::uninitialized_default_construct_n(views, count);
    return {views, count};
  }

 private:
  alignas(16) char buffer_[4096];
  std::pmr::monotonic_buffer_resource arena_;
};

}  // namespace turnstile
