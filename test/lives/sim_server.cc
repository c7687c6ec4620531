#include "sim_server.h"

#include <utility>

namespace turnstile::lives {
namespace {

using content::Grant;
using content::ServerLife;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr auto kTimeout = 1s;
constexpr auto kRenewEvery = 3s;

ClientError unavailable() { return {ErrorCode::unavailable, "no answer", {}, {}}; }

// One plugin's way to the server.
class Line : public std::enable_shared_from_this<Line> {
 public:
  Line(SimServer& server, std::shared_ptr<Wire> wire, Schedule& schedule, std::function<void(Duration)> sleep)
      : server_(server), wire_(std::move(wire)), schedule_(schedule), sleep_(std::move(sleep)) {}

  Time now() const { return schedule_.now(); }
  Schedule& schedule() { return schedule_; }
  const Wire& wire() const { return *wire_; }
  SimServer& server() { return server_; }
  bool is_open() const {
    return server_.up && !wire_->dead && now() >= wire_->cut_until && now() >= wire_->stalled_until;
  }

  // Has `act` done at the server, as the library does: asked twice at most. True: an answer came. `maybe` is
  // set when an earlier try may have been done without one.
  bool call(const std::function<void()>& act, bool* maybe = nullptr, int attempts = 2) {
    for (int attempt = 0; attempt < attempts; ++attempt) {
      if (wire_->dead) return false;
      sleep_(milliseconds(schedule_.random.between(0, 20)));
      if (wire_->dead) return false;
      const bool open = is_open();
      const uint64_t fate = server_.faults ? schedule_.random.below(40) : 39;
      if (open && fate >= 6) {
        server_.rules->expire(now());
        act();
        drain();
        sleep_(milliseconds(schedule_.random.between(0, 10)));
        return !wire_->dead;
      }
      if (open && fate < 4) {  // only the answer is lost
        server_.rules->expire(now());
        act();
        if (maybe != nullptr) *maybe = true;
      } else if (fate == 4 && server_.delays) {  // it lies in some buffer
        ++server_.delayed;
        if (maybe != nullptr) *maybe = true;
        wire_->buffered.push_back(act);
        schedule_.after(milliseconds(schedule_.random.between(1'000, 20'000)),
                        [self = shared_from_this()] { self->drain(); });
      } else if (maybe != nullptr) {
        *maybe = *maybe || fate == 5;
      }
      sleep_(kTimeout);
    }
    return false;
  }

  void note(const Question& question, const std::string& what) {
    schedule_.note("    server: " + question.node + " " + what + " " + question.operation + " " +
                   question.resource.substr(7, 4));
  }

  // Soon.
  void drain() {
    for (std::function<void()>& act : wire_->buffered)
      schedule_.after(milliseconds(schedule_.random.between(0, 1'000)),
                      [self = shared_from_this(), late = std::move(act)] {
                        if (!self->server_.up) return;
                        self->server_.rules->expire(self->now());
                        late();
                      });
    wire_->buffered.clear();
  }

 private:
  SimServer& server_;
  const std::shared_ptr<Wire> wire_;
  Schedule& schedule_;
  const std::function<void(Duration)> sleep_;
};

class SimHold final : public content::ServerHold, public std::enable_shared_from_this<SimHold> {
 public:
  SimHold(std::shared_ptr<Line> line, Question question, const Reply& reply)
      : line_(std::move(line)),
        question_(std::move(question)),
        reply_(reply),
        life_(line_->server().life),
        believed_until_(line_->now() + milliseconds(question_.lease_ms)) {}
  // As the library's keeper does, whatever the caller is at.
  void keep() {
    line_->schedule().after(kRenewEvery, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self || self->ended_) return;
      if (self->line_->is_open() &&
          !self->line_->server().rules->renew(self->question_, self->reply_.token, self->line_->now()))
        return;  // lost
      if (self->line_->is_open()) self->believe();
      self->keep();
    });
  }

  uint32_t attempt() const override { return reply_.attempt; }
  std::string previous_error() const override { return reply_.previous_error; }
  void report_progress(uint64_t, uint64_t) override {}
  Expected<void> renew() override {
    auto renewed = std::make_shared<bool>(false);
    if (!line_->call([line = line_, question = question_, token = reply_.token, renewed] {
          *renewed = line->server().rules->renew(question, token, line->now());
        }))
      return std::unexpected(unavailable());
    if (!*renewed) return std::unexpected(ClientError{ErrorCode::lost, "it is gone", {}, {}});
    believe();
    return {};
  }
  bool is_believed() const override { return line_->now() < believed_until_; }
  Expected<bool> release(const WorkResult& result) override {
    if (std::exchange(ended_, true)) return false;
    auto released = std::make_shared<bool>(false);
    bool maybe = false;
    const bool answered = line_->call(
        [line = line_, question = question_, token = reply_.token, result, released] {
          *released =
              line->server().rules->unlock(question, token, result.success, result.error, line->now());
          line->note(question,
                     std::string(result.success ? "unlock" : "give back") + (*released ? "" : ": no"));
        },
        &maybe);
    if (!answered) return std::unexpected(unavailable());
    if (*released) return true;
    if (maybe) return false;  // the first try may have done it; or the lease had run out before
    return std::unexpected(ClientError{ErrorCode::lost, "it is gone", {}, {}});
  }

 private:
  void believe() { believed_until_ = line_->now() + milliseconds(question_.lease_ms); }

  const std::shared_ptr<Line> line_;
  const Question question_;
  const Reply reply_;
  const uint64_t life_;
  Time believed_until_;
  bool ended_ = false;
};

// What the plugin holds; gives it back when it goes.
class OwnedHold final : public content::ServerHold {
 public:
  explicit OwnedHold(std::shared_ptr<SimHold> hold) : hold_(std::move(hold)) { hold_->keep(); }
  ~OwnedHold() override { (void)hold_->release(WorkResult::failed("abandoned")); }
  uint32_t attempt() const override { return hold_->attempt(); }
  std::string previous_error() const override { return hold_->previous_error(); }
  void report_progress(uint64_t done, uint64_t total) override { hold_->report_progress(done, total); }
  Expected<void> renew() override { return hold_->renew(); }
  bool is_believed() const override { return hold_->is_believed(); }
  Expected<bool> release(const WorkResult& result) override { return hold_->release(result); }

 private:
  const std::shared_ptr<SimHold> hold_;
};

class SimLockServer final : public content::LockServer {
 public:
  explicit SimLockServer(std::shared_ptr<Line> line) : line_(std::move(line)) {}

  Expected<Grant> try_lock(const LockRequest& request) override { return ask(request, 2); }
  Expected<Grant> try_lock_once(const LockRequest& request) override { return ask(request, 1); }
  Expected<Grant> ask(const LockRequest& request, int attempts) {
    const Question question = question_of(request);
    auto reply = std::make_shared<Reply>();
    if (!line_->call(
            [line = line_, question, reply] {
              *reply = line->server().rules->lock(question, line->now());
              constexpr const char* kKinds[] = {"granted", "skipped", "queued", "refused"};
              line->note(question, std::string("lock: ") + kKinds[size_t(reply->kind)]);
            },
            nullptr, attempts))
      return std::unexpected(unavailable());
    Grant grant;
    switch (reply->kind) {
      case Reply::Kind::granted:
        grant.hold = std::make_unique<OwnedHold>(std::make_shared<SimHold>(line_, question, *reply));
        break;
      case Reply::Kind::skipped:
        grant.skipped = true;
        grant.references = reply->references;
        break;
      case Reply::Kind::queued:
        (void)line_->call([line = line_, question] { line->server().rules->cancel(question, line->now()); });
        return std::unexpected(ClientError{ErrorCode::busy, "another holds it", {}, {}});
      case Reply::Kind::refused:
        return std::unexpected(ClientError{ErrorCode::refused, "no", reply->reason, {}});
    }
    return grant;
  }
  Expected<Grant> lock(const LockRequest& request, LockClient::Clock::time_point,
                       const std::stop_token&) override {
    return try_lock(request);
  }
  void cancel(const LockRequest&) override {}
  Expected<LaneStatus> status(const std::string& operation, const std::string& resource) override {
    auto status = std::make_shared<LaneStatus>();
    if (!line_->call([line = line_, operation, resource, status] {
          status->waiters = line->server().rules->waiters(resource, line->now());
          if (line->server().rules->is_done(operation, resource, line->now()))
            status->completion = CompletionStatus{.success = true};
        }))
      return std::unexpected(unavailable());
    return *status;
  }
  std::vector<Expected<void>> add_references(const std::vector<std::string>& resources) override {
    std::vector<Expected<void>> results;
    for (const std::string& resource : resources) {
      auto added = std::make_shared<bool>(false);
      if (!line_->call([line = line_, resource, added] {
            *added = line->server().rules->add_reference(resource, line->wire().node, line->now());
            line->note({"reference", resource, line->wire().node}, *added ? "add" : "add: no");
          }))
        results.push_back(std::unexpected(unavailable()));
      else if (!*added)
        results.push_back(std::unexpected(ClientError{ErrorCode::refused, "being deleted", "busy", {}}));
      else
        results.emplace_back();
    }
    return results;
  }
  Expected<ServerLife> life() override {
    auto life = std::make_shared<ServerLife>();
    if (!line_->call([line = line_, life] {
          life->id = std::to_string(line->server().life);
          life->age = std::chrono::duration_cast<milliseconds>(line->now() - line->server().began);
        }))
      return std::unexpected(unavailable());
    return *life;
  }

 private:
  Question question_of(const LockRequest& request) {
    const std::string id = request.request_id.empty() ? std::to_string(++last_) : request.request_id;
    return {request.operation,     request.resource,   line_->wire().node, id,
            request.lease.count(), request.dereference};
  }

  const std::shared_ptr<Line> line_;
  static inline uint64_t last_ = 0;  // over the lives of a plugin: a request id is never used twice
};

}  // namespace

std::unique_ptr<content::LockServer> connect(SimServer& server, std::shared_ptr<Wire> wire,
                                             Schedule& schedule, std::function<void(Duration)> sleep) {
  return std::make_unique<SimLockServer>(
      std::make_shared<Line>(server, std::move(wire), schedule, std::move(sleep)));
}

}  // namespace turnstile::lives
