// The audit log: who was let in, who was refused, what admins did. One line of JSON each.
//
// Apart from the ordinary log, because others read it, and keep it for longer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/sync.h"
#include "base/time.h"
#include "base/unique_fd.h"

namespace turnstile::access {

// What is never in it: a secret.
struct AuditEntry {
  std::string_view what;  // "login", "refused", "admin", "reload"
  std::string_view name;  // of the credential; empty: nobody that is known
  std::string_view address;
  std::string_view call;  // the path
  std::string_view resource, node;
  std::string_view outcome;  // "ok", or a code of the API's
  uint64_t count = 1;        // of a batch: so many items; the first of them is named
};

// Lines go through a queue to a thread that writes them, so that no loop ever waits for a disk. A queue that
// is full drops them, and says how many it has dropped. Anybody can be refused, as often as he likes: of
// those whom nobody knows only some are listed, and the others counted, so that nobody fills the disk with
// them. Threads: any. Invariant: at most kMostWaiting lines wait.
class AuditLog {
 public:
  static constexpr size_t kMostWaiting = 8192;
  // Refusals of somebody without a name: so many at once, and so many a second for longer.
  static constexpr unsigned kStrangersAtOnce = 200, kStrangersASecond = 10;

  // `target`: empty: the ordinary log; "off"; "journal": systemd's; else a file, which is appended to.
  static Result<std::unique_ptr<AuditLog>> open(
      const std::string& target, const std::string& journal_socket = "/run/systemd/journal/socket");
  // Writes what waits.
  ~AuditLog();

  void write(const AuditEntry& entry) TS_EXCLUDES(mutex_);
  // The file by its name again, for whoever has moved it away. Done by the thread, before the next line.
  void reopen() TS_EXCLUDES(mutex_);
  bool is_on() const { return kind_ != Kind::off; }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  enum class Kind : uint8_t { log, off, journal, file };
  struct Line {
    Time time;
    std::string what, name, address, call, resource, node, outcome;
    uint64_t count;
  };

  AuditLog(Kind kind, std::string target) : kind_(kind), target_(std::move(target)) {}
  Result<void> open_target();
  void run();
  bool lists_stranger() TS_REQUIRES(mutex_);
  void add_unlisted() TS_REQUIRES(mutex_);
  void put(const Line& line);
  void put_in_journal(const std::string& text);
  void lost(uint64_t count) { dropped_.fetch_add(count, std::memory_order_relaxed); }

  const Kind kind_;
  const std::string target_;  // the file, or the journal's socket
  UniqueFd fd_;               // the thread's, once it runs
  bool failing_ = false;      // the thread's: has said that it cannot write
  bool torn_ = false;         // the thread's: the file ends within a line
  std::atomic<uint64_t> dropped_{0};
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Line> waiting_ TS_GUARDED_BY(mutex_);
  double strangers_ TS_GUARDED_BY(mutex_) = kStrangersAtOnce;  // that may be listed now,
  Duration counted_at_ TS_GUARDED_BY(mutex_){};                // as of then
  uint64_t unlisted_ TS_GUARDED_BY(mutex_) = 0;
  bool reopen_ TS_GUARDED_BY(mutex_) = false;
  bool stop_ TS_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace turnstile::access
