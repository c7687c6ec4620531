#include "etcd/grpc_watch.h"

#include <condition_variable>
#include <thread>

#include "etcd/failures.h"

namespace turnstile::etcd {
namespace {

namespace pb = etcdserverpb;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kConnectWithin{2000}, kFirstPause{50}, kLongestPause{1000};

class GrpcWatch final : public Watch {
 public:
  GrpcWatch(Members& members, const std::string& begin, const std::string& end, Revision from,
            OnWatch on_events, std::function<void(CallError)> on_lost)
      : members_(members),
        begin_(begin),
        end_(end),
        next_(from),
        on_events_(std::move(on_events)),
        on_lost_(std::move(on_lost)),
        thread_([this] { run(); }) {}

  ~GrpcWatch() override {
    {
      Locked lock(mutex_);
      stopped_ = true;
      if (context_ != nullptr) context_->TryCancel();
    }
    condition_.notify_all();
    thread_.join();
  }

 private:
  void run() {
    milliseconds pause = kFirstPause;
    while (!stopped()) {
      const size_t index = members_.first(Members::Kind::reads);
      const Revision before = next_;
      if (auto lost = follow(members_.at(index))) return on_lost_(*std::move(lost));
      if (stopped()) return;
      members_.failed(index);
      pause = next_ > before ? kFirstPause : std::min(2 * pause, kLongestPause);
      wait(pause);
    }
  }

  // Until the stream breaks. An error: no other one would do better.
  std::optional<CallError> follow(Member& member) {
    const SteadyTime deadline = steady_clock::now() + kConnectWithin;
    while (!members_.connect(member, std::min(deadline, steady_clock::now() + milliseconds(100))))
      if (stopped() || steady_clock::now() >= deadline) return std::nullopt;
    if (auto error = members_.meet(member, deadline))
      return error->failure == Failure::refused ? error : std::nullopt;

    grpc::ClientContext context;
    const std::string token = members_.introduce(context);
    if (!use(&context)) return std::nullopt;
    const auto stream = member.watch->Watch(&context);
    pb::WatchRequest wish;
    pb::WatchCreateRequest& create = *wish.mutable_create_request();
    create.set_key(begin_);
    create.set_range_end(end_);
    create.set_start_revision(next_);
    create.set_progress_notify(true);
    std::optional<CallError> lost;
    if (stream->Write(wish)) lost = listen(*stream, token, member);
    context.TryCancel();
    stream->Finish();
    use(nullptr);
    return lost;
  }

  template <class Stream>
  std::optional<CallError> listen(Stream& stream, const std::string& token, Member& member) {
    pb::WatchResponse told;
    while (stream.Read(&told)) {
      if (told.canceled()) return canceled(told, token, member);
      if (told.created()) continue;
      // The header's revision may be ahead of the events: those of a watcher that catches up come in pieces.
      const Revision seen =
          told.events_size() > 0 ? told.events().rbegin()->kv().mod_revision() : told.header().revision();
      next_ = std::max(next_, seen + 1);
      refused_logins_ = 0;
      on_events_(taken(told), seen);
    }
    return std::nullopt;
  }

  std::optional<CallError> canceled(const pb::WatchResponse& told, const std::string& token, Member& member) {
    if (told.compact_revision() != 0)
      return CallError{Failure::compacted,
                       "etcd " + member.url + ": what was to be watched has been compacted"};
    // A login that has run out is told as a permission that is not there.
    if (told.cancel_reason().find("permission denied") == std::string::npos) return std::nullopt;
    if (members_.has_user() && ++refused_logins_ == 1) {
      members_.forget(token);
      return std::nullopt;
    }
    return CallError{Failure::denied, "etcd " + member.url + ": permission denied"};
  }

  static std::vector<WatchEvent> taken(pb::WatchResponse& told) {
    std::vector<WatchEvent> events;
    events.reserve(size_t(told.events_size()));
    for (pb::Event& each : *told.mutable_events()) {
      pb::KeyValue& from = *each.mutable_kv();
      events.push_back({.value = {.key = std::move(*from.mutable_key()),
                                  .value = std::move(*from.mutable_value()),
                                  .create_revision = from.create_revision(),
                                  .mod_revision = from.mod_revision(),
                                  .lease = LeaseId(from.lease())},
                        .erased = each.type() == pb::Event::DELETE});
    }
    return events;
  }

  // False: it is to end.
  bool use(grpc::ClientContext* context) {
    Locked lock(mutex_);
    context_ = context;
    return !stopped_;
  }
  bool stopped() {
    Locked lock(mutex_);
    return stopped_;
  }
  void wait(milliseconds time) {
    std::unique_lock lock(mutex_.native());
    condition_.wait_for(lock, time, [this]() TS_NO_ANALYSIS { return stopped_; });
  }

  Members& members_;
  const std::string begin_, end_;
  Revision next_;                // the first that has not been seen; the thread's
  unsigned refused_logins_ = 0;  // since something was heard; the thread's
  const OnWatch on_events_;
  const std::function<void(CallError)> on_lost_;

  Mutex mutex_;
  std::condition_variable condition_;
  bool stopped_ TS_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ TS_GUARDED_BY(mutex_) = nullptr;  // of the stream that is open
  std::thread thread_;                                            // last: it uses all of them
};

}  // namespace

std::unique_ptr<Watch> make_watch(Members& members, const std::string& begin, const std::string& end,
                                  Revision from, OnWatch on_events, std::function<void(CallError)> on_lost) {
  return std::make_unique<GrpcWatch>(members, begin, end, from, std::move(on_events), std::move(on_lost));
}

}  // namespace turnstile::etcd
