// The members of an etcd as a client sees them: which one is asked, what is sent again, and as whom.
#pragma once

#include <etcd_rpc.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/sync.h"
#include "etcd/call_line.h"
#include "etcd/connect.h"

namespace turnstile::etcd {

// For gRPC's deadlines: a clock that nobody sets.
gpr_timespec grpc_time(SteadyTime time);

// One member: its connection, and the calls it knows. Threads: any.
struct Member {
  std::string url;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Watch::Stub> watch;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  std::unique_ptr<etcdserverpb::Maintenance::Stub> maintenance;
  std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  std::atomic<bool> new_enough{false};  // its version has been seen
  LineShelf line;                       // for transactions, while it leads
};

// One call, as whom and until when.
struct Asking {
  grpc::ClientContext context{};
  std::string token{};
  SteadyTime deadline{};
};

// Asks one member after the other. What changes something begins with the one that leads, which every other
// would have to ask first: a commit takes half as long. What only reads begins with the one that has answered
// last, so that the one that leads has less to do.
//
// Not its job: what is said. Threads: any; a call waits on its caller's thread. One of its own connects,
// looks who leads, and keeps a line to it. Time: the system's, for deadlines. Invariant: a call that may have
// been carried out is sent again only if that is harmless.
class Members {
 public:
  enum class Kind : uint8_t { reads, changes };
  enum class Repeat : uint8_t { never, harmless };
  using Call = std::function<grpc::Status(Member&, Asking&)>;

  Members(const Options& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials);
  ~Members();

  Answer<void> ask(Kind kind, Repeat repeat, Client::Timeout within, const Call& call);
  // This one alone; it has a connection. Nothing: it has answered.
  std::optional<CallError> ask_one(Member& member, SteadyTime deadline, const Call& call);

  // By the member's line, if it has one; else by gRPC.
  grpc::Status transact(Member& member, Asking& asking, const etcdserverpb::TxnRequest& request,
                        etcdserverpb::TxnResponse& response);
  // For tests: how many calls a line has taken.
  uint64_t calls_by_line() const { return calls_by_line_.load(std::memory_order_relaxed); }

  size_t count() const { return members_.size(); }
  Member& at(size_t index) { return *members_[index]; }
  // Who should be asked now; and who has answered, or has not.
  size_t first(Kind kind) const { return first_of(kind).load(std::memory_order_relaxed); }
  void answered(Kind kind, size_t index) { first_of(kind).store(index, std::memory_order_relaxed); }
  void failed(size_t index);

  // Waits for a connection. False: there was none in time; after true there may still be none, which a call
  // then tells with its reason.
  bool connect(Member& member, SteadyTime deadline);
  // What must come before the first call: the member is new enough, and knows who we are. An error: nothing
  // else has been sent.
  std::optional<CallError> meet(Member& member, SteadyTime deadline);
  // Says in this call who we are. Returns the proof, which forget() takes when it is refused.
  std::string introduce(grpc::ClientContext& context) TS_EXCLUDES(mutex_);
  void forget(const std::string& token) TS_EXCLUDES(mutex_);
  bool has_user() const { return !user_.empty(); }

 private:
  std::atomic<size_t>& first_of(Kind kind) { return kind == Kind::reads ? reads_first_ : changes_first_; }
  const std::atomic<size_t>& first_of(Kind kind) const {
    return kind == Kind::reads ? reads_first_ : changes_first_;
  }
  void reconnect() TS_NO_ANALYSIS;  // the thread's,
  void look_who_leads();            // as are these
  void keep_line(Member& member, const std::string& peer);
  // Its address, as gRPC has found it, if it leads.
  std::optional<std::string> leads(Member& member);
  void want_connections() TS_EXCLUDES(mutex_);
  std::optional<CallError> check_version(Member& member, SteadyTime deadline);
  // What TLS says against us there, if it is that.
  std::optional<std::string> refusal(const Member& member, const std::string& peer,
                                     SteadyTime deadline) const;
  std::optional<CallError> log_in(Member& member, SteadyTime deadline) TS_EXCLUDES(mutex_);

  const std::string user_, password_;
  const bool secure_;
  const LineTls line_tls_;  // null: not secure, or no lines
  std::vector<std::unique_ptr<Member>> members_;
  std::atomic<size_t> reads_first_{0}, changes_first_{0};
  std::atomic<uint64_t> calls_by_line_{0};

  Mutex mutex_;
  std::string token_ TS_GUARDED_BY(mutex_);  // etcd's word for what a login gives
  bool logged_in_ TS_GUARDED_BY(mutex_) = false;
  bool connections_wanted_ TS_GUARDED_BY(mutex_) = true, stopped_ TS_GUARDED_BY(mutex_) = false;
  std::condition_variable condition_;
  // A connection comes about only while somebody waits for it: a call that finds none does not. This one
  // waits as long as a member is away, so that it is found when it is back. Now and then it looks who leads.
  std::thread thread_;
};

}  // namespace turnstile::etcd
