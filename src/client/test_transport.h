// For tests: a server that is a function, and time that passes only by being slept away.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/core.h"
#include "client/timing.h"
#include "client/transport.h"
#include "turnstile/lock_client.h"

namespace turnstile::client {

class TestTiming : public Timing {
 public:
  Steady::time_point now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  bool sleep_until(Steady::time_point time, std::stop_token stop) const override {
    const std::lock_guard lock(mutex_);
    if (stop.stop_requested()) return false;
    if (time > now_) slept_.push_back(std::chrono::duration_cast<Milliseconds>(time - now_));
    now_ = std::max(now_, time);
    return true;
  }
  void advance(Steady::duration by) const {
    const std::lock_guard lock(mutex_);
    now_ += by;
  }
  std::vector<Milliseconds> slept() const {
    const std::lock_guard lock(mutex_);
    return slept_;
  }

 private:
  mutable std::mutex mutex_;
  mutable Steady::time_point now_ = Steady::time_point(std::chrono::hours(1));
  mutable std::vector<Milliseconds> slept_;
};

using AnswerOrError = std::expected<Answer, TransportError>;

inline AnswerOrError answer(int status, std::string body) {
  return Answer{.status = status, .body = std::move(body)};
}
inline AnswerOrError unreachable() {
  return std::unexpected(TransportError{Fault::unreachable, false, "connection refused"});
}
inline AnswerOrError broken() {
  return std::unexpected(TransportError{Fault::broken, true, "connection reset"});
}
inline AnswerOrError silent() { return std::unexpected(TransportError{Fault::timed_out, true, "timed out"}); }
inline AnswerOrError stopped() { return std::unexpected(TransportError{Fault::stopped, true, "stopped"}); }

constexpr const char* kAcquired =
    R"({"acquired":true,"skip":false,"state":"acquired","token":7,"attempt":1})";
constexpr const char* kQueued = R"({"acquired":false,"skip":false,"state":"queued","position":2,)"
                                R"("holder":{"node_id":"other","token":6,"since":"then"}})";
constexpr const char* kSkipped = R"({"acquired":false,"skip":true,"state":"skipped"})";
constexpr const char* kReleased = R"({"released":true,"message":"","waiters":[]})";
constexpr const char* kRenewed = R"({"renewed":true,"lease_ms":10000})";
constexpr const char* kCancelled = R"({"cancelled":true})";
inline std::string refusal(const std::string& code) { return R"({"error":"no","code":")" + code + "\"}"; }

// Answers by script: what is put into `script` first, then what `otherwise` says.
class TestTransport : public Transport {
 public:
  struct Seen {
    std::string server, target, body;
    Milliseconds timeout;
  };

  AnswerOrError exchange(const Exchange& exchange) override {
    std::function<AnswerOrError(const Exchange&)> next;
    {
      const std::lock_guard lock(mutex);
      if (keep_seen) {
        seen.push_back({std::string(exchange.server), std::string(exchange.target),
                        std::string(exchange.body), exchange.timeout});
      }
      ++count;
      if (!script.empty()) {
        next = std::move(script.front());
        script.pop_front();
      } else {
        next = otherwise;
      }
    }
    return next(exchange);
  }
  AnswerOrError stream(const Exchange& exchange, const Bytes& bytes) override {
    return on_stream(exchange, bytes);
  }

  void then(AnswerOrError what) {
    script.push_back([what](const Exchange&) { return what; });
  }

  std::mutex mutex;
  bool keep_seen = true;
  std::vector<Seen> seen;
  size_t count = 0;
  std::deque<std::function<AnswerOrError(const Exchange&)>> script;
  std::function<AnswerOrError(const Exchange&)> otherwise = [](const Exchange&) { return unreachable(); };
  std::function<AnswerOrError(const Exchange&, const Bytes&)> on_stream = [](const Exchange&, const Bytes&) {
    return unreachable();
  };
};

// A client of such a server's, in such a time.
struct TestClient {
  explicit TestClient(ClientSettings settings = {}) {
    settings.node_id = "me";
    core = std::make_shared<LockClient::Core>(settings, transport,
                                              CoreOptions{.timing = timing, .keeper_thread = false});
    client = std::make_unique<LockClient>(core);
  }
  std::shared_ptr<TestTransport> transport = std::make_shared<TestTransport>();
  std::shared_ptr<TestTiming> timing = std::make_shared<TestTiming>();
  std::shared_ptr<LockClient::Core> core;
  std::unique_ptr<LockClient> client;
};

}  // namespace turnstile::client
