// What the plugin asks of the lock server, and what it can know of the outcome.
//
// An interface, so that the rules above it also run in a simulation (test/lives), where calls get lost and
// servers forget. With a network it is ClientLockServer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "turnstile/lock_client.h"

namespace turnstile::content {

// Whether the server could not be asked, rather than said no. Then what was asked for may have been done.
inline bool is_away(const ClientError& error) {
  return error.code == ErrorCode::unavailable || error.code == ErrorCode::not_turnstile;
}

// A hold of a lane. Destroyed, it is released as a failure ("abandoned"). Threads: one at a time.
class ServerHold {
 public:
  virtual ~ServerHold() = default;

  virtual uint32_t attempt() const = 0;
  virtual std::string previous_error() const = 0;
  virtual void report_progress(uint64_t done, uint64_t total) = 0;
  // Asks the server.
  virtual Expected<void> renew() = 0;
  // Whether it may be ours still, by the clock: enough to go on, not enough to take something away.
  virtual bool is_believed() const = 0;
  // True: the server has said that the result counts. False: it has not; the hold is over in either case.
  virtual Expected<bool> release(const WorkResult& result) = 0;
};

// What a request for a lock came to: exactly one of these.
struct Grant {
  std::unique_ptr<ServerHold> hold;
  bool skipped = false;
  bool queued = false;
  std::string request_id{};  // with queued
  std::string waits_for{};   // with queued: for people
};

// A server from one start to the next. What it was told in one life it may have forgotten in the next: a
// store can be lost, or an old one restored.
struct ServerLife {
  std::string id;
  std::chrono::milliseconds age{};
  std::optional<bool> keeps_references{};  // as S17 says; none: it does not tell
  bool forgets = false;                    // a store in memory
};

// Threads: any.
class LockServer {
 public:
  virtual ~LockServer() = default;

  virtual Expected<Grant> try_lock(const LockRequest& request) = 0;
  // This node's reference is dropped at once, whoever holds the resource. Returns how many nodes still use
  // it. Asked once: after an answer to a second try the first could still be carried out, and end a use that
  // has begun since.
  virtual Expected<uint32_t> release_reference(const std::string& resource) = 0;
  // How many nodes use it.
  virtual Expected<uint32_t> references(const std::string& resource) = 0;
  virtual Expected<Grant> lock(const LockRequest& request, LockClient::Clock::time_point deadline,
                               const std::stop_token& stop) = 0;
  virtual void cancel(const LockRequest& request) = 0;
  virtual Expected<LaneStatus> status(const std::string& operation, const std::string& resource) = 0;
  // In as few calls as possible; one result for each.
  virtual std::vector<Expected<void>> add_references(const std::vector<std::string>& resources) = 0;
  virtual Expected<ServerLife> life() = 0;
};

}  // namespace turnstile::content
