// Arbitration by the lock server: each blob is downloaded by one node, used by many, and removed by the last.
//
// The server's rules do most of it (docs/semantics.md): `pull` with scope "resource" is the right to write, a
// skip says that it has been done and makes this node a user, `delete` with dereference ends a use. What is
// added here is what containerd needs: an answer at once, a place in the queue that is kept meanwhile, and
// patience with a server that is away.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "content/arbiter.h"
#include "content/hold_ticket.h"
#include "content/metrics.h"
#include "content/node_references.h"
#include "content/settings.h"
#include "content/unsettled.h"
#include "content/waiting_places.h"
#include "turnstile/lock_client.h"

namespace turnstile::content {

// Threads: any, and one of its own that tells the server later what it could not be told at once, and asks it
// now and then whether it is there. Time: a
// call takes as long as the client is patient with a server that does not answer, and then no call asks for
// kAwayFor, so that containerd is not held up again and again.
class LockArbiter final : public Arbiter {
 public:
  struct Options {
    WithoutServer without_server = WithoutServer::wait;
    std::chrono::milliseconds visible_within{10'000};  // that another node's blob can be seen here
    WaitingPlaces::Times places{};
    std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
    std::shared_ptr<NodeReferences> references{};  // none: the server keeps them
    // Whether this node's database has the blob. Any thread.
    std::function<bool(const Digest&)> uses;
    // Takes a blob out of every root; for removals that were put off. Any thread.
    std::function<bool(const Digest&)> is_there;  // in some root
    std::function<Outcome<void>(const Digest&)> remove;
  };
  // For a client that is asked inside a transaction of containerd's.
  static ClientSettings client_settings(const Settings& settings);

  // What is wrong, and what to do, when the server of which `version` tells leaves the references to others
  // than this plugin was told.
  static std::optional<std::string> wrong_references(const std::string& version, ReferencesBy expected);

  LockArbiter(LockClient client, std::shared_ptr<Unsettled> unsettled, Options options);
  ~LockArbiter() override;

  Decision begin_write(const Digest& digest, int64_t size) override;
  Decision begin_adoption(const Digest& digest) override;
  Removal forget(const Digest& digest) override;
  void resume(const std::vector<Digest>& used) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Late {
    Clock::time_point since, asked;
  };

  static constexpr std::chrono::milliseconds kOwnPatience{300};  // containerd's whole node waits meanwhile
  static LockRequest request_for(const char* operation, const Digest& digest);

  Decision begin(const Digest& digest, Decision::Kind wanted) TS_EXCLUDES(late_mutex_);
  Decision decide(const Digest& digest, Decision::Kind wanted, LockResult result, HoldTicket::Terms terms);
  Decision go(const Digest& digest, Decision::Kind wanted, Hold hold, HoldTicket::Terms terms);
  Decision refused(Decision::Kind wanted, const ClientError& error, Unsettled::Claim claim);
  Decision stay(const Digest& digest, const LockResult& queued, Unsettled::Claim claim);
  // What is there is used from now on: counted by this node itself, while nobody can be removing it.
  Decision join(const Digest& digest, HoldTicket::Terms terms);
  // Adds this node's reference and gives `hold` back. An error: it does not count, but may be there.
  Expected<void> count_under(const Digest& digest, Hold hold);
  Decision pull_again(const Digest& digest, HoldTicket::Terms terms);
  static Decision wait(std::string why);
  // Whether the blob was said to be done for so long that it will hardly come into sight.
  bool is_overdue(const Digest& digest) TS_EXCLUDES(late_mutex_);

  Removal drop(const Digest& digest, Unsettled::Claim claim);
  Removal drop_counted(const Digest& digest, Unsettled::Claim claim);
  Removal remove_under(const Digest& digest, Hold hold, Unsettled::Claim claim);
  bool counts_references(const Digest& digest, Unsettled::Claim& claim);

  void run(const std::stop_token& stop) TS_EXCLUDES(wake_mutex_);
  void settle(const Digest& digest, Unsettled::Claim claim);
  bool count_use(const Digest& digest);
  // Asks the server whether it is there, when it has not been asked for some time.
  void look_for_server();
  // Says what is wrong with a server that answers.
  std::optional<std::string> check_server();
  // Both remember whether the server is there.
  void note(const ClientError& error);
  bool away() const { return Clock::now().time_since_epoch().count() < away_until_.load(); }

  LockClient client_;
  const std::shared_ptr<Unsettled> unsettled_;
  const std::shared_ptr<Endings> endings_ = std::make_shared<Endings>();
  const Options options_;
  KeyLocks turns_;  // one hold for each blob among this node's own streams
  WaitingPlaces places_;
  std::atomic<Clock::rep> away_until_{0};
  enum class ServerIs : uint8_t { unknown, right, wrong };
  std::atomic<ServerIs> server_is_{ServerIs::unknown};

  Mutex late_mutex_;
  std::map<Digest, Late> late_ TS_GUARDED_BY(late_mutex_);

  Mutex wake_mutex_;
  std::condition_variable_any wake_;
  Clock::time_point looked_{};  // by the thread
  std::jthread thread_;         // last: it uses the others
};

}  // namespace turnstile::content
