// The lock server's real rules, asked by plain values: the engine's types and the client's have names in
// common, and this file has neither.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace turnstile::lives {

struct Question {
  std::string operation{}, resource{}, node{}, request{};
  int64_t lease_ms = 0;
  bool dereference = false;
  uint64_t poll = 0;  // of a long poll; 0: none
};

struct Reply {
  enum class Kind : uint8_t { granted, skipped, queued, refused, cancelled } kind = Kind::refused;
  uint64_t token = 0;
  uint32_t attempt = 0;
  std::string previous_error, reason;
};

// How work ended.
struct WorkEnd {
  bool success = false;
  std::string error{};
  std::optional<Duration> keep{};
};

// Threads: one.
class ServerRules {
 public:
  ServerRules();
  ~ServerRules();

  Reply lock(const Question& question, Time now);
  // What a long poll of a question that was `queued` has come to, once.
  std::optional<Reply> take_wake(uint64_t poll);
  // Its connection has broken.
  void break_poll(const Question& question, Time now);
  void cancel(const Question& question, Time now);
  bool renew(const Question& question, uint64_t token, Time now);
  // False: the hold is not known.
  bool unlock(const Question& question, uint64_t token, const WorkEnd& end, Time now);
  bool add_reference(const std::string& resource, const std::string& node, Time now);  // false: being deleted
  // Returns how many nodes still use it.
  uint32_t release_reference(const std::string& resource, const std::string& node, Time now);
  void release_node(const std::string& node, Time now);
  std::vector<std::string> references(const std::string& resource);
  std::vector<std::string> waiters(const std::string& resource, Time now);
  bool is_done(const std::string& operation, const std::string& resource, Time now);
  void expire(Time now);
  // As after a start: full leases again.
  void begin_again(Time now);

 private:
  struct Inside;
  const std::unique_ptr<Inside> inside_;
};

}  // namespace turnstile::lives
