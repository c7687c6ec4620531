#include "etcd/members.h"

#include <fmt/format.h>

#include <algorithm>

#include "etcd/failures.h"

namespace turnstile::etcd {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kLookWhoLeads{2};
constexpr std::chrono::milliseconds kTimeToSayWhoLeads{300}, kTimeToOpenALine{300};

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // what is sent again is decided here
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);  // how long one attempt may take
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // etcd hangs up on who asks more often than every 5 s, or asks without a call under way.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 6000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000);
  arguments.SetMaxReceiveMessageSize(-1);  // as etcd's own client: the caller limits what it asks for
  arguments.SetMaxSendMessageSize(-1);     // etcd says itself what is too large
  return arguments;
}

// "http://host:1" -> "host:1".
std::string_view authority(std::string_view url) {
  const size_t at = url.find("://");
  return at == std::string_view::npos ? url : url.substr(at + 3);
}

// Of what was asked before the call itself, which has therefore not been sent.
CallError before_the_call(CallError error) {
  if (error.failure == Failure::unknown) error.failure = Failure::not_done;
  return error;
}

// Of several members: what may have been carried out counts most, where that makes a difference; then that
// the user is not let in, also if only one has said so. Another setting is wrong only if all say so.
CallError sum(const std::vector<CallError>& errors, Members::Repeat repeat) {
  const bool may_be_done =
      repeat == Members::Repeat::never &&
      std::ranges::any_of(errors, [](const CallError& each) { return each.failure == Failure::unknown; });
  const auto decisive = std::ranges::find_if(errors, is_about_user);
  if (!may_be_done && decisive != errors.end()) return *decisive;
  CallError sum{errors.front().failure, {}};
  for (const CallError& each : errors) {
    if (each.failure == Failure::unknown || sum.failure == Failure::unknown)
      sum.failure = Failure::unknown;
    else if (each.failure != sum.failure)
      sum.failure = Failure::not_done;
    if (!sum.message.empty()) sum.message += "; ";
    sum.message += each.message;
  }
  return sum;
}

}  // namespace

gpr_timespec grpc_time(SteadyTime time) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(time - steady_clock::now());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(left.count(), GPR_TIMESPAN));
}

Members::Members(const Options& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : user_(options.user),
      password_(options.password),
      secure_(options.endpoints.front().starts_with("https://")),
      line_tls_(secure_ ? make_line_tls(options) : LineTls{nullptr, &SSL_CTX_free}) {
  for (const std::string& url : options.endpoints) {
    auto member = std::make_unique<Member>();
    member->url = url;
    member->channel =
        grpc::CreateCustomChannel(fmt::format("dns:///{}", authority(url)), credentials, channel_arguments());
    member->kv = etcdserverpb::KV::NewStub(member->channel);
    member->watch = etcdserverpb::Watch::NewStub(member->channel);
    member->lease = etcdserverpb::Lease::NewStub(member->channel);
    member->maintenance = etcdserverpb::Maintenance::NewStub(member->channel);
    member->auth = etcdserverpb::Auth::NewStub(member->channel);
    members_.push_back(std::move(member));
  }
  thread_ = std::thread([this] { reconnect(); });
}

Members::~Members() {
  {
    Locked lock(mutex_);
    stopped_ = true;
  }
  condition_.notify_all();
  thread_.join();
}

void Members::want_connections() {
  {
    Locked lock(mutex_);
    connections_wanted_ = true;
  }
  condition_.notify_all();
}

void Members::reconnect() {
  bool all_connected = true;
  SteadyTime next_look{};
  for (;;) {
    {
      std::unique_lock lock(mutex_.native());
      const auto wanted = [this]() TS_NO_ANALYSIS { return connections_wanted_ || stopped_; };
      if (all_connected) condition_.wait_for(lock, kLookWhoLeads, wanted);
      if (stopped_) return;
      connections_wanted_ = false;
    }
    all_connected = true;
    for (const auto& member : members_) {
      const grpc_connectivity_state state = member->channel->GetState(true);
      if (state == GRPC_CHANNEL_READY) continue;
      all_connected = false;
      member->channel->WaitForStateChange(state, grpc_time(steady_clock::now() + kLook));
    }
    // The only one leads. Before it has let us in, a call of this thread's could be the one that it hangs up
    // on, and whoever must hear why would not.
    const bool too_early =
        members_.size() == 1 && !members_.front()->new_enough.load(std::memory_order_relaxed);
    if (too_early || steady_clock::now() < next_look) continue;
    look_who_leads();
    next_look = steady_clock::now() + (all_connected ? kLookWhoLeads : kLookWhoLeads / 4);
  }
}

// The one that did leads nearly always: then that is all that is asked.
void Members::look_who_leads() {
  const size_t before = first(Kind::changes);
  for (size_t i = 0; i < members_.size(); ++i) {
    const size_t index = (before + i) % members_.size();
    const std::optional<std::string> peer = leads(*members_[index]);
    if (!peer) continue;
    answered(Kind::changes, index);
    return keep_line(*members_[index], *peer);
  }
}

std::optional<std::string> Members::leads(Member& member) {
  if (member.channel->GetState(false) != GRPC_CHANNEL_READY) return std::nullopt;
  grpc::ClientContext context;
  context.set_deadline(grpc_time(steady_clock::now() + kTimeToSayWhoLeads));
  etcdserverpb::StatusResponse response;
  const bool told = member.maintenance->Status(&context, {}, &response).ok();
  if (!told || response.leader() == 0 || response.leader() != response.header().member_id())
    return std::nullopt;
  return context.peer();
}

void Members::keep_line(Member& member, const std::string& peer) {
  const SteadyTime until = steady_clock::now() + kTimeToOpenALine;
  if (auto line = member.line.take()) member.line.give_back(line->tend(until) ? std::move(line) : nullptr);
  if (!member.line.is_empty() || (secure_ && !line_tls_)) return;
  if (auto line = CallLine::open(peer, line_tls_.get(), std::string(authority(member.url)), until))
    member.line.give_back(std::move(line));
}

grpc::Status Members::transact(Member& member, Asking& asking, const etcdserverpb::TxnRequest& request,
                               etcdserverpb::TxnResponse& response) {
  auto line = member.line.take();
  if (line && !line->is_usable()) {
    line.reset();
    member.line.give_back(nullptr);
  }
  if (!line) return member.kv->Txn(&asking.context, request, &response);
  calls_by_line_.fetch_add(1, std::memory_order_relaxed);
  const grpc::Status status = line->transact(request, asking.token, asking.deadline, response);
  member.line.give_back(std::move(line));
  return status;
}

void Members::failed(size_t index) {
  for (const Kind kind : {Kind::reads, Kind::changes}) {
    size_t expected = index;
    first_of(kind).compare_exchange_strong(expected, (index + 1) % members_.size(),
                                           std::memory_order_relaxed);
  }
}

bool Members::connect(Member& member, SteadyTime deadline) {
  for (;;) {
    const grpc_connectivity_state state = member.channel->GetState(true);
    if (state == GRPC_CHANNEL_READY) return true;
    want_connections();
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) return true;
    if (!member.channel->WaitForStateChange(state, grpc_time(deadline))) return false;
  }
}

std::string Members::introduce(grpc::ClientContext& context) {
  context.AddMetadata("hasleader", "true");  // a member that has lost the others shall say so at once
  Locked lock(mutex_);
  if (!token_.empty()) context.AddMetadata("token", token_);
  return token_;
}

void Members::forget(const std::string& token) {
  Locked lock(mutex_);
  if (token_ == token) logged_in_ = false;
}

std::optional<CallError> Members::log_in(Member& member, SteadyTime deadline) {
  {
    Locked lock(mutex_);
    if (user_.empty() || logged_in_) return std::nullopt;
  }
  grpc::ClientContext context;
  context.set_deadline(grpc_time(deadline));
  etcdserverpb::AuthenticateRequest request;
  request.set_name(user_);
  request.set_password(password_);
  etcdserverpb::AuthenticateResponse response;
  const grpc::Status status = member.auth->Authenticate(&context, request, &response);
  // An etcd that asks nobody for a name takes us without one.
  const bool not_asked = status.error_message().find("authentication is not enabled") != std::string::npos;
  if (!status.ok() && !not_asked) return before_the_call(call_error(status, member.url));
  Locked lock(mutex_);
  token_ = response.token();
  logged_in_ = true;
  return std::nullopt;
}

std::optional<CallError> Members::meet(Member& member, SteadyTime deadline) {
  if (auto error = check_version(member, deadline)) return error;
  return log_in(member, deadline);
}

std::optional<CallError> Members::ask_one(Member& member, SteadyTime deadline, const Call& call) {
  for (bool again = false;; again = true) {
    if (auto error = meet(member, deadline)) return error;
    Asking asking;
    asking.deadline = deadline;
    asking.context.set_deadline(grpc_time(deadline));
    asking.token = introduce(asking.context);
    const grpc::Status status = call(member, asking);
    if (status.ok()) return std::nullopt;
    if (!has_user() || !wants_login(status) || again) return call_error(status, member.url);
    forget(asking.token);
  }
}

std::optional<CallError> Members::check_version(Member& member, SteadyTime deadline) {
  if (member.new_enough.load(std::memory_order_relaxed)) return std::nullopt;
  grpc::ClientContext context;
  context.set_deadline(grpc_time(deadline));
  etcdserverpb::StatusResponse response;
  const grpc::Status status = member.maintenance->Status(&context, {}, &response);
  if (!status.ok()) {
    CallError error = before_the_call(call_error(status, member.url));
    if (error.failure == Failure::not_done)
      if (auto why = refusal(member, context.peer(), deadline))
        return CallError{Failure::denied, fmt::format("etcd {}: TLS: {}", member.url, *why)};
    return error;
  }
  if (const auto reason = too_old(response.version()))
    return CallError{Failure::refused, fmt::format("etcd {}: {}", member.url, *reason)};
  member.new_enough.store(true, std::memory_order_relaxed);
  return std::nullopt;
}

// gRPC tells a member that does not let us in from one that is away only by how the connection ended, which
// is now one way, now another. Half of the time that is left: whoever is asked next needs some, too.
std::optional<std::string> Members::refusal(const Member& member, const std::string& peer,
                                            SteadyTime deadline) const {
  if (!line_tls_) return std::nullopt;
  const SteadyTime now = steady_clock::now();
  const std::string_view where = authority(member.url);
  const bool is_known = peer.starts_with("ipv4:") || peer.starts_with("ipv6:");
  return LineSocket::refusal(is_known ? peer : fmt::format("url:{}", where), line_tls_.get(), host_of(where),
                             now + (deadline - now) / 2);
}

Answer<void> Members::ask(Kind kind, Repeat repeat, Client::Timeout within, const Call& call) {
  const SteadyTime deadline = steady_clock::now() + within;
  const size_t first = this->first(kind);
  std::vector<CallError> errors;
  for (size_t i = 0; i < members_.size(); ++i) {
    const size_t index = (first + i) % members_.size();
    Member& member = *members_[index];
    const SteadyTime now = steady_clock::now();
    const SteadyTime share = now + (deadline - now) / int(members_.size() - i);  // the others' must be left
    CallError error{Failure::not_done, fmt::format("etcd {}: no connection in time", member.url)};
    if (connect(member, share)) {
      auto failed = ask_one(member, repeat == Repeat::harmless ? share : deadline, call);
      if (!failed) {
        answered(kind, index);
        return {};
      }
      error = *std::move(failed);
    }
    if (!is_of_member(error.failure)) return std::unexpected(std::move(error));
    failed(index);
    errors.push_back(std::move(error));
    if (errors.back().failure == Failure::unknown && repeat == Repeat::never) break;
  }
  return std::unexpected(sum(errors, repeat));
}

}  // namespace turnstile::etcd
