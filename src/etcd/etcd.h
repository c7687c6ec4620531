// What the server asks of etcd: the edge between the replicated store and the network.
//
// A client that speaks gRPC is behind it, and in a simulation an etcd that misbehaves. Every call blocks
// until it is answered or its deadline has passed; whoever must not wait has a thread of its own for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace turnstile::etcd {

using Revision = int64_t;
enum class LeaseId : int64_t { none = 0 };

// What a failed call means for whoever made it.
enum class Failure : uint8_t {
  unknown,   // a write may have been carried out, or may yet be: only the same call again can tell
  not_done,  // certainly not carried out; it may be tried again
  no_space,  // a write may have been carried out (NOSPACE is no rollback), and no new one will be until there
             // is room
  compacted,  // the revision asked for is gone: read anew
  gone,       // the lease is not there any more
  denied,     // user, password or certificate: settings are wrong
  refused,  // etcd does not take such a call (too large, not supported): settings are wrong, or a bug of ours
};

struct CallError {
  Failure failure = Failure::unknown;
  std::string message;  // a sentence for people, with the member's address where that helps
};
template <class T>
using Answer = std::expected<T, CallError>;

struct KeyValue {
  std::string key, value;
  Revision create_revision = 0, mod_revision = 0;
  LeaseId lease = LeaseId::none;
};

// Keys from `begin` to before `end`; an empty `end`: the one key.
struct RangeRequest {
  std::string begin{}, end{};
  Revision at = 0;   // 0: the latest, by consensus; never a member's own idea of it
  size_t limit = 0;  // 0: no limit
  bool keys_only = false;
};
struct RangeAnswer {
  std::vector<KeyValue> values;  // in the order of their keys
  Revision revision = 0;         // of the store, when it was asked
  bool more = false;             // the limit left some out
};

// `create_revision(key) == expected`; 0: there is no such key.
struct Guard {
  std::string key;
  Revision expected = 0;
};
struct Put {
  std::string key, value;
  LeaseId lease = LeaseId::none;
};
struct Erase {
  std::string begin{}, end{};  // as in RangeRequest
};
// If every guard holds: all of it in one revision, the erasures first. Else nothing. No key may be written
// twice, or lie in a range that is erased, too: etcd refuses that.
struct Transaction {
  std::vector<Guard> guards{};
  std::vector<Erase> erases{};
  std::vector<Put> puts{};
};
struct TransactionAnswer {
  bool done = false;  // the guards held
  Revision revision = 0;
};

struct LeaseAnswer {
  LeaseId lease = LeaseId::none;
  std::chrono::seconds ttl{};  // what etcd made of the wish
};

struct WatchEvent {
  KeyValue value;  // of an erased key only its name and mod_revision
  bool erased = false;
};
// `events` are in order; `revision`: up to which the watcher has seen everything, if it has lost nothing.
using OnWatch = std::function<void(std::vector<WatchEvent> events, Revision revision)>;

// Ends when destroyed; then no callback is under way any more. Not from within a callback.
class Watch {
 public:
  virtual ~Watch() = default;
};

struct MemberStatus {
  std::string url;
  bool healthy = false;
  std::string error;  // with !healthy: why
  std::string version;
  int64_t database_bytes = 0, used_bytes = 0;
  bool leads = false;
  bool no_space = false;  // the alarm
};

// Threads: every call by any; callbacks of a watch on a thread of the client's.
class Client {
 public:
  using Timeout = std::chrono::milliseconds;

  virtual ~Client() = default;

  virtual Answer<RangeAnswer> range(const RangeRequest& request, Timeout within) = 0;
  virtual Answer<TransactionAnswer> commit(const Transaction& transaction, Timeout within) = 0;

  virtual Answer<LeaseAnswer> grant(std::chrono::seconds ttl, Timeout within) = 0;
  // The time that the lease has from the moment the call was *sent* (the caller takes that time before). An
  // answer is no proof: etcd 3.4.23 can renew a revoked lease.
  virtual Answer<std::chrono::seconds> keep_alive(LeaseId lease, Timeout within) = 0;
  virtual Answer<void> revoke(LeaseId lease, Timeout within) = 0;

  // Changes of keys from `begin` to before `end`, from revision `from` on. A hint, never a proof: events can
  // be lost and repeated. Goes on by itself over broken connections; `on_lost` when it cannot any more
  // (compacted).
  virtual std::unique_ptr<Watch> watch(const std::string& begin, const std::string& end, Revision from,
                                       OnWatch on_events, std::function<void(CallError)> on_lost) = 0;

  virtual Answer<void> compact(Revision revision, Timeout within) = 0;
  // Each member by itself, so that one that is away is seen.
  virtual std::vector<MemberStatus> members(Timeout within) = 0;
};

// The end of the range of all keys that begin with `prefix`.
std::string prefix_end(std::string prefix);

}  // namespace turnstile::etcd
