// This process as one server among several: etcd's client, who leads, and what /servers and /metrics say of
// it.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/sync.h"
#include "etcd/etcd.h"
#include "replica/replica.h"
#include "replica/replica_threads.h"
#include "server/common.h"
#include "server/forwarder.h"

namespace turnstile {

// An error is one line: a member is too old. One that does not answer is waited for.
Result<void> check_etcd_version(const std::vector<etcd::MemberStatus>& members);

// Threads: make(), prepare(), start() and hand_over() by the main thread; the owner is called by a thread of
// its own, between start() and stop_turns(); everything else by any.
class Replication {
 public:
  // Connects, and asks etcd whether the settings can be right. An error is one line, and no use to try again.
  static Result<std::unique_ptr<Replication>> make(const ReplicationSettings& settings, Common& common);
  ~Replication();

  // Before anybody can ask for it: what the loops use is there. `url`: how others reach this server.
  void prepare(const std::string& url, ReplicaOwner& owner);
  Result<void> start();
  void doubt(const std::string& why) { replica_->doubt(why); }
  // This server ends, whatever etcd has not taken by now.
  void give_up() { replica_->give_up(); }
  // No life begins or ends any more by itself.
  void stop_turns() {
    if (threads_) threads_->stop_turns();
  }
  // The last is written, and this server ends: the next may lead at once.
  void hand_over();

  std::string servers_json() const;
  void append_metrics(std::string& out) const;

 private:
  Replication(const ReplicationSettings& settings, Common& common, std::unique_ptr<etcd::Client> client);
  void look_at_members(const std::stop_token& stop);
  // As this server's writes find it while it leads, or as a member says.
  bool etcd_is_full() const;
  std::vector<etcd::MemberStatus> members() const TS_EXCLUDES(mutex_) {
    const Locked lock(mutex_);
    return members_;
  }

  const ReplicationSettings settings_;
  Common& common_;
  const std::unique_ptr<etcd::Client> client_;
  std::string name_, url_;  // from prepare() on, like replica_ and forwarder_
  mutable Mutex mutex_;
  std::vector<etcd::MemberStatus> members_ TS_GUARDED_BY(mutex_);
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<ReplicaThreads> threads_;
  std::unique_ptr<Forwarder> forwarder_;
  std::jthread looker_;
};

// Asks nobody yet. An error is about a setting.
Result<std::unique_ptr<etcd::Client>> connect_to_etcd(const ReplicationSettings& settings);

// GET /servers of a server that is alone.
std::string single_server_json(const std::string& url, Time since);

}  // namespace turnstile
