// The state of one resource: its lanes, their holds, queues and memories, and its references.
//
// Plain data, laid out for a million held locks in 350 MB: what most lanes do not have stands behind a
// pointer. Who may change it, and how, is in rules.h.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/deadline_heap.h"
#include "base/shared_text.h"
#include "base/sync.h"
#include "base/text.h"
#include "engine/kept_result.h"
#include "engine/operations.h"
#include "engine/types.h"
#include "engine/wait_queue.h"

namespace turnstile {

// What few holds have.
struct HoldExtras {
  Text info;
  SharedText previous_error;
  Progress progress;
  Time progress_at = kNever;  // when it last moved; kNever: none was reported
  Time bond_until = kNever;   // monitored and without a bond: when the grace is over
};

// Why a hold's one running deadline would end it. An unclaimed grant runs against its claim time-out; lease
// and max_hold begin with the claim.
enum class Deadline : uint8_t { unclaimed, lease, max_hold };

struct Hold {
  Text node, request;
  Token token = Token::none;  // none: the lane is free
  Time since{};
  Time until = kNever;
  std::unique_ptr<HoldExtras> extras;
  uint32_t lease_ms = 0;
  uint32_t attempt = 1;
  Deadline deadline = Deadline::max_hold;
  Scope scope = Scope::operation;
  bool monitor = false;
  uint16_t by_polls = 0;  // so many long polls that its grant answered are its only claim (S36)

  bool held() const { return token != Token::none; }
  bool claimed() const { return deadline != Deadline::unclaimed; }
  Requester who() const { return {NodeId(node), RequestId(request)}; }
  HoldExtras& extra() {
    if (!extras) extras = std::make_unique<HoldExtras>();
    return *extras;
  }
};

// Which hold has ended a wait or a lane's work, and what it left, as far as it is known (S27, S39).
struct EndedHold {
  Token token = Token::none;
  uint32_t attempt = 0;
  SharedText node{};  // empty: not known, or of no interest
  Time at{};
  KeptResult result{};
};

struct Completion {
  SharedText error;
  Time until{};
  bool success = false;
  bool permanent = false;
  EndedHold hold{};
};

// The token of the last unlocked hold, so that a repeated unlock is recognized (S15).
struct Released {
  Token token = Token::none;
  Text node;
  Time until{};
};

// A requester as a key: node and request id joined by a NUL, which neither can contain.
std::string to_key(const Requester& who);
Requester from_key(std::string_view key);

inline constexpr Token kLastToken = Token(UINT64_MAX);

// How the waits of requesters ended that may not know it yet (S2).
class Endings {
 public:
  struct Entry {
    Ending how{};
    SharedText error;
    Time until{};
    EndedHold hold{};
  };

  bool empty() const { return by_requester_.empty(); }
  const Entry* find(const Requester& who) const;
  void set(const Requester& who, Entry entry);
  bool erase(const Requester& who);
  // All that are remembered until then and that a hold before this one has left.
  bool erase_skips(Time until = kNever, Token before = kLastToken);
  void drop_until(Time now);
  Time next() const { return order_.empty() ? kNever : order_.begin()->first; }
  // Calls visit(Requester, Entry) for each, in a fixed order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [key, entry] : by_requester_) visit(from_key(key), entry);
  }

 private:
  std::map<std::string, Entry, std::less<>> by_requester_;
  std::set<std::pair<Time, std::string>> order_;  // by `until`
};

// The open connections that show that requesters of a lane live (S21). Ten thousand may wait with one each,
// so nothing here depends on how many there are.
class Bonds {
 public:
  bool empty() const { return by_requester_.empty(); }
  bool any(const Requester& who) const { return by_requester_.contains(to_key(who)); }
  bool has(const Requester& who, BondId id, bool subscriptions_only = false) const;
  // False: it was there already. A subscription lives until it is closed, the connection of a monitor:true
  // request until the hold or wait ends.
  bool add(const Requester& who, BondId id, bool subscription);
  bool erase(const Requester& who, BondId id);
  void erase_connections(const Requester& who);

 private:
  struct Bond {
    BondId id;
    bool subscription;
  };
  std::multimap<std::string, Bond, std::less<>> by_requester_;
};

// A queue whose waiters have all ended in one step, some of whom have still to be told (rules_ended.cc).
// Invariant: it is not empty.
struct EndedQueue {
  std::unique_ptr<WaitQueue> waiters;
  Endings::Entry ending;             // of each of them
  std::unique_ptr<EndedQueue> next;  // has ended later
};

// What a lane remembers besides its hold, queue and completion.
struct LaneMemory {
  Released released;
  SharedText last_error;  // of the attempts since the last success
  std::unique_ptr<Endings> endings;
  std::unique_ptr<Bonds> bonds;
  std::unique_ptr<EndedQueue> ended;  // the oldest first

  bool empty() const {
    return !ended && released.token == Token::none && last_error.empty() && (!endings || endings->empty()) &&
           (!bonds || bonds->empty());
  }
};

struct Lane {
  explicit Lane(const Operation& of) : operation(&of) { operation->begin_use(); }
  ~Lane() {
    forget_completion();
    operation->end_use();
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  const Operation* const operation;
  Hold hold;
  std::unique_ptr<WaitQueue> queue;
  std::unique_ptr<Completion> completion;  // changed by the two functions below only: they are counted
  std::unique_ptr<LaneMemory> memory;
  std::unique_ptr<Lane> next;  // of the same resource
  uint32_t failures = 0;       // attempts that failed since the last success, while the lane was not empty

  const OperationRules& rules() const { return operation->rules; }
  bool has_waiters() const { return queue && !queue->empty(); }
  bool empty() const { return !hold.held() && !queue && !completion && !memory && failures == 0; }
  void keep_completion(Completion made) {
    forget_completion();
    completion = std::make_unique<Completion>(std::move(made));
    operation->kept.fetch_add(1, std::memory_order_relaxed);
  }
  void forget_completion() {
    if (!completion) return;
    completion.reset();
    operation->kept.fetch_sub(1, std::memory_order_relaxed);
  }
  LaneMemory& remember() {
    if (!memory) memory = std::make_unique<LaneMemory>();
    return *memory;
  }
};

struct Resource {
  explicit Resource(std::string_view name) : id(name) {}

  SmallMutex mutex;  // guards all but `state`, `slot` and `place`
  // How many threads are about to use it, times two, plus one when it is empty: see shard.h.
  std::atomic<uint32_t> state{0};
  uint32_t slot = 0;             // in the shard's list of all; guarded by its table lock
  HeapPlace place = kNotInHeap;  // guarded by the shard's heap mutex
  const Text id;
  std::unique_ptr<Lane> lanes;
  std::unique_ptr<std::vector<Text>> references;  // nodes, sorted

  bool empty() const { return !lanes && !references; }
};

}  // namespace turnstile
