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
constexpr auto kLongPoll = 20s;
constexpr auto kLook = 100ms;  // so late an answer to a long poll may come

ClientError unavailable() { return {ErrorCode::unavailable, "no answer", {}, {}}; }

// One plugin's way to the server.
class Line : public std::enable_shared_from_this<Line> {
 public:
  Line(SimServer& server, std::shared_ptr<Wire> wire, Schedule& schedule, std::function<void(Duration)> sleep)
      : server_(server), wire_(std::move(wire)), schedule_(schedule), sleep_(std::move(sleep)) {}

  Time now() const { return schedule_.now(); }
  Schedule& schedule() { return schedule_; }
  const Wire& wire() const { return *wire_; }
  void sleep(Duration time) { sleep_(time); }
  void cut(Duration time) {
    if (server_.faults && now() >= server_.calm_until) wire_->cut_until = now() + time;
  }
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
          *released = line->server().rules->unlock(question, token,
                                                   {result.success, result.error, result.keep}, line->now());
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

  Expected<Grant> try_lock(const LockRequest& request) override {
    const Question question = question_of(request);
    const std::optional<Reply> reply = ask(question, 2);
    if (!reply) return std::unexpected(unavailable());
    if (reply->kind != Reply::Kind::queued) return to_grant(question, *reply);
    if (request.stay_when_busy) {
      Grant grant;
      grant.queued = true;
      grant.request_id = question.request;
      grant.waits_for = "another holds it";
      return grant;
    }
    // Cut off just now, it stays in the queue for nobody.
    if (line_->schedule().random.chance(10)) line_->cut(3s);
    cancel(question);
    return std::unexpected(ClientError{ErrorCode::busy, "another holds it", {}, {}});
  }
  // By long polls, one after the other.
  Expected<Grant> lock(const LockRequest& request, LockClient::Clock::time_point,
                       const std::stop_token& stop) override {
    Question question = question_of(request);
    while (!line_->wire().dead) {
      question.poll = ++last_;
      const std::optional<Reply> answer = ask(question, 1);
      const std::optional<Reply> reply =
          answer && answer->kind == Reply::Kind::queued ? poll(question, stop) : answer;
      if (stop.stop_requested() && (!reply || reply->kind == Reply::Kind::queued)) {
        cancel(question);
        return std::unexpected(ClientError{ErrorCode::cancelled, "stopped", {}, {}});
      }
      if (!reply) {
        line_->sleep(kLook);
      } else if (reply->kind != Reply::Kind::queued) {
        return to_grant(question, *reply);
      }
    }
    return std::unexpected(unavailable());
  }
  void cancel(const LockRequest& request) override { cancel(question_of(request)); }
  Expected<uint32_t> release_reference(const std::string& resource) override {
    auto left = std::make_shared<uint32_t>(0);
    if (!line_->call(
            [line = line_, resource, left] {
              *left = line->server().rules->release_reference(resource, line->wire().node, line->now());
              line->note({"reference", resource, line->wire().node}, "release");
            },
            nullptr, 1))
      return std::unexpected(unavailable());
    return *left;
  }
  Expected<uint32_t> references(const std::string& resource) override {
    auto found = std::make_shared<uint32_t>(0);
    if (!line_->call([line = line_, resource, found] {
          *found = uint32_t(line->server().rules->references(resource).size());
        }))
      return std::unexpected(unavailable());
    return *found;
  }
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
  // None: no answer came.
  std::optional<Reply> ask(const Question& question, int attempts) {
    auto reply = std::make_shared<Reply>();
    auto given_up = std::make_shared<bool>(false);
    if (line_->call(
            [line = line_, question, reply, given_up] {
              *reply = line->server().rules->lock(question, line->now());
              constexpr const char* kKinds[] = {"granted", "skipped", "queued", "refused", "cancelled"};
              line->note(question, std::string("lock: ") + kKinds[size_t(reply->kind)]);
              if (*given_up) line->server().rules->break_poll(question, line->now());
            },
            nullptr, attempts))
      return *reply;
    *given_up = true;
    line_->server().rules->break_poll(question, line_->now());
    return std::nullopt;
  }
  // Waits for the end of a long poll that the server has taken. None: its connection broke.
  std::optional<Reply> poll(const Question& question, const std::stop_token& stop) {
    SimServer& server = line_->server();
    const uint64_t life = server.life;
    const Time end = line_->now() + kLongPoll;
    for (;;) {
      line_->sleep(kLook);
      const bool broken = !line_->is_open() || server.life != life;
      if (!broken && !stop.stop_requested() && line_->now() < end) {
        server.rules->expire(line_->now());
        std::optional<Reply> reply = server.rules->take_wake(question.poll);
        if (!reply) continue;
        line_->note(question, "is woken");
        if (!server.faults || !line_->schedule().random.chance(10)) return reply;
        return std::nullopt;  // the answer is lost
      }
      // The server hears of it, or has begun anew without it.
      if (server.life == life) server.rules->break_poll(question, line_->now());
      if (broken) return std::nullopt;
      return Reply{.kind = Reply::Kind::queued};
    }
  }
  Expected<Grant> to_grant(const Question& question, const Reply& reply) {
    Grant grant;
    switch (reply.kind) {
      case Reply::Kind::granted:
        grant.hold = std::make_unique<OwnedHold>(std::make_shared<SimHold>(line_, question, reply));
        break;
      case Reply::Kind::skipped:
        grant.skipped = true;
        break;
      case Reply::Kind::refused:
        return std::unexpected(ClientError{ErrorCode::refused, "no", reply.reason, {}});
      default:
        return std::unexpected(ClientError{ErrorCode::cancelled, "cancelled", {}, {}});
    }
    return grant;
  }
  void cancel(const Question& question) {
    (void)line_->call([line = line_, question] { line->server().rules->cancel(question, line->now()); });
  }
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
