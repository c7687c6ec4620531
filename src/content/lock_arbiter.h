// Arbitration by the lock server: each blob is downloaded by one node, used by many, and removed by the last.
//
// The server's rules do most of it (docs/semantics.md): `pull` with scope "resource" is the right to write, a
// skip says that it has been done and makes this node a user, a released reference ends a use, and `delete`
// is the right to remove what nobody uses. What is added here is what containerd needs: an answer at once, a
// place in the queue that is kept meanwhile, and patience with a server that is away.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "content/arbiter.h"
#include "content/hold_ticket.h"
#include "content/lock_server.h"
#include "content/metrics.h"
#include "content/node_references.h"
#include "content/settings.h"
#include "content/waiting_places.h"

namespace turnstile::content {

// Threads: any; look_after() and has_forgotten() by one. Time: a call takes as long as the client is patient
// with a server that does not answer, and then no call asks for kAwayFor, so that containerd is not held up
// again and again.
class LockArbiter final : public Arbiter {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::string node{};  // by which this plugin counts
    std::string
        identity{};         // of this plugin on this machine, over its restarts; empty: it is not asked about
    std::string machine{};  // the same for people
    WithoutServer without_server = WithoutServer::wait;
    std::chrono::milliseconds visible_within{10'000};  // that another node's blob can be seen here
    std::chrono::milliseconds settled_after{
        20'000};  // of a server's life: a lease, and time to tell all uses
    WaitingPlaces::Options places{};
    std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
    std::shared_ptr<NodeReferences> references{};  // none: the server keeps them
    std::function<Clock::time_point()> now = [] { return Clock::now(); };
  };

  // What is wrong, and what to do, when the server leaves the references to others than this plugin was told.
  static std::optional<std::string> wrong_references(const ServerLife& life, ReferencesBy expected);

  LockArbiter(std::unique_ptr<LockServer> server, Options options);
  ~LockArbiter() override;

  Decision begin_write(const Digest& digest, int64_t size) override;
  Decision begin_adoption(const Digest& digest) override;
  bool is_waiting(const Digest& digest) override { return places_.has(digest); }
  Removal end_use(const Digest& digest, bool is_there) override;
  bool counts_nobody(const Digest& digest) override;
  std::string life() const override TS_EXCLUDES(life_mutex_);
  std::string ask_life() override;
  bool has_forgotten() override { return forgotten_.exchange(false); }
  std::vector<bool> confirm_uses(const std::vector<Digest>& used) override;
  std::vector<Digest> counted() override;
  bool is_settled() override TS_EXCLUDES(life_mutex_);
  bool is_remote() const override { return true; }
  bool has_its_name() override TS_EXCLUDES(name_mutex_, trouble_mutex_);
  void look_after() override;

  // Makes this node's name this plugin's. What is wrong: another plugin, on another machine or with another
  // --state, has it; until that has ended no use begins here. No answer from the server is not wrong, nor is
  // a refusal; it is asked again later.
  std::optional<std::string> claim_name() TS_EXCLUDES(name_mutex_, trouble_mutex_);

 private:
  struct Late {
    Clock::time_point since, asked;
  };

  static LockRequest request_for(const char* operation, const Digest& digest);

  Decision begin(const Digest& digest, Decision::Kind wanted) TS_EXCLUDES(late_mutex_);
  // `asked_in`: the server's life, as it was known before the question. A skip has counted this node in that
  // one, or in one that nobody here knows of yet.
  Decision decide(const Digest& digest, Decision::Kind wanted, Grant grant, const std::string& asked_in);
  Decision go(const Digest& digest, Decision::Kind wanted, std::unique_ptr<ServerHold> hold,
              HoldTicket::Work work, std::function<bool()> is_counted = {});
  // `may_count`: what was asked for may have been done.
  Decision refused(Decision::Kind wanted, const ClientError& error, bool may_count);
  Decision stay(const Digest& digest, const Grant& queued, const std::string& asked_in);
  Decision pull_again(const Digest& digest, std::function<bool()> counted_by_skip);
  static Decision wait(std::string why, bool may_count = false);
  // Whether that life is still the server's, as far as is known when it is asked.
  std::function<bool()> is_still_counted(const std::string& counted_by);
  HoldTicket::Note noting();
  // Whether the blob was said to be done for so long that it will hardly come into sight.
  bool is_overdue(const Digest& digest) TS_EXCLUDES(late_mutex_);

  Removal ask_end(const Digest& digest, bool is_there);
  Removal remove_under(const Digest& digest, std::unique_ptr<ServerHold> hold);

  // uses_counted.cc: where the nodes count themselves.
  Decision join(const Digest& digest);
  // Adds this node's reference and gives `hold` back. An error: it does not count, but may be there.
  Expected<void> count_under(const Digest& digest, std::unique_ptr<ServerHold> hold);
  Removal drop_counted(const Digest& digest, bool is_there);
  bool count_use(const Digest& digest);

  std::optional<std::string> name_trouble() const TS_EXCLUDES(trouble_mutex_);
  // `headline`: of the line in the log.
  void set_name_trouble(std::optional<std::string> trouble, const char* headline) TS_EXCLUDES(trouble_mutex_);
  void name_refused(const ClientError& error) TS_REQUIRES(name_mutex_) TS_EXCLUDES(trouble_mutex_);

  // Asks the server whether it is there and what it is. What is wrong with it.
  std::optional<std::string> check_server();
  std::optional<ServerLife> look() TS_EXCLUDES(life_mutex_);
  // The server's life as last seen, whether it counts or not.
  std::string server_life() const TS_EXCLUDES(life_mutex_);
  // What is wrong with the server that was seen last. It confirms nothing, and nothing is given up there: its
  // count, or its want of one, says nothing about this node.
  std::optional<std::string> wrong_server() const TS_EXCLUDES(life_mutex_);
  std::optional<std::string> wrong_with(const ServerLife& life) const;
  bool is_right_server() const TS_EXCLUDES(life_mutex_);  // and was seen
  // Remembers whether the server is there.
  void note(const ClientError& error);
  void let_in();
  bool away() const { return options_.now().time_since_epoch().count() < away_until_.load(); }

  const std::unique_ptr<LockServer> server_;
  const Options options_;
  WaitingPlaces places_;
  std::atomic<Clock::rep> away_until_{0};
  std::atomic<bool> forgotten_{false};
  std::atomic<bool> not_let_in_{false};  // the last that was heard of this node's credential

  mutable Mutex life_mutex_;
  std::optional<ServerLife> life_ TS_GUARDED_BY(life_mutex_);
  Clock::time_point life_seen_ TS_GUARDED_BY(life_mutex_){};

  Mutex late_mutex_;
  std::map<Digest, Late> late_ TS_GUARDED_BY(late_mutex_);

  Mutex name_mutex_;
  std::unique_ptr<ServerHold> name_ TS_GUARDED_BY(name_mutex_);
  bool name_is_open_ TS_GUARDED_BY(name_mutex_) = false;  // the server cannot keep it for anybody now
  std::string name_life_ TS_GUARDED_BY(name_mutex_);      // of the server, which has it in its state
  mutable Mutex trouble_mutex_;
  std::optional<std::string> name_trouble_ TS_GUARDED_BY(trouble_mutex_);  // as last heard

  Clock::time_point looked_{};  // by look_after()
};

}  // namespace turnstile::content
