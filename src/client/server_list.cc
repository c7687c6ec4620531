#include "client/server_list.h"

#include <algorithm>

#include "client/server_url.h"

namespace turnstile::client {
namespace {

// A server that took a second not to answer would take another one: it is given several times as long to
// recover, or to lose its lead. One that refuses at once costs nothing to ask.
constexpr int kTimesAsLong = 4;
constexpr Steady::duration kLeastSuspicion = Milliseconds(300), kMostSuspicion = Milliseconds(4'000);

}  // namespace

ServerList::ServerList(const ClientSettings& settings)
    : servers_(settings.servers),
      with_credential_(!settings.credential.empty() || !settings.credential_file.empty()) {}

std::string ServerList::current() const {
  const Locked lock(mutex_);
  return leader_.empty() ? servers_[index_] : leader_;
}

void ServerList::answered(const std::string& server) {
  std::vector<std::stop_source> left;
  {
    const Locked lock(mutex_);
    // Another call may have taken too long there, and moved on.
    std::erase_if(suspects_, [&](const Suspect& suspect) { return suspect.server == server; });
    const auto known = std::ranges::find(servers_, server);
    if (known != servers_.end()) index_ = size_t(known - servers_.begin());
    leader_ = known != servers_.end() ? std::string() : server;
    if (led_ == server) return;
    led_ = server;
    for (const OpenStream::Place& stream : streams_)
      if (stream.server != server) left.push_back(stream.stop);
  }
  for (std::stop_source& stop : left) stop.request_stop();  // not under the lock: it calls others
}

bool ServerList::is_suspected(const std::string& server, Steady::time_point now) const {
  return std::ranges::any_of(
      suspects_, [&](const Suspect& suspect) { return suspect.until > now && suspect.server == server; });
}

void ServerList::suspect(const std::string& server, Steady::duration took, Steady::time_point now) {
  const Locked lock(mutex_);
  std::erase_if(suspects_,
                [&](const Suspect& suspect) { return suspect.until <= now || suspect.server == server; });
  suspects_.push_back({server, now + std::clamp(kTimesAsLong * took, kLeastSuspicion, kMostSuspicion)});
}

void ServerList::next(Steady::time_point now) {
  for (size_t i = 1; i <= servers_.size(); ++i) {
    const size_t index = (index_ + i) % servers_.size();
    if (is_suspected(servers_[index], now)) continue;
    index_ = index;
    return;
  }
  index_ = (index_ + 1) % servers_.size();
}

void ServerList::move_on_from(const std::string& server, Steady::time_point now) {
  const Locked lock(mutex_);
  if (!leader_.empty()) {
    if (leader_ != server) return;
    leader_.clear();
    if (is_suspected(servers_[index_], now)) next(now);
  } else if (servers_[index_] == server) {
    next(now);
  }
}

ServerList::Follow ServerList::follow(const std::string& from, const std::string& leader,
                                      Steady::time_point now) {
  const Locked lock(mutex_);
  const auto known =
      std::ranges::find_if(servers_, [&](const std::string& server) { return same_server(server, leader); });
  const bool ours = known != servers_.end();
  const std::string& name = ours ? *known : leader;
  const std::optional<ServerUrl> here = parse_server_url(from), there = parse_server_url(leader);
  const bool stranger = !ours && !(here && there && may_follow(*here, *there, with_credential_));
  if (stranger || name == from || is_suspected(name, now)) {
    if (leader_ == from) leader_.clear();
    if (leader_.empty() && servers_[index_] == from) next(now);
    return stranger ? Follow::stranger : Follow::suspected;
  }
  if (ours) index_ = size_t(known - servers_.begin());
  leader_ = ours ? std::string() : leader;
  return Follow::yes;
}

ServerList::OpenStream::OpenStream(ServerList& list, const std::string& server) : list_(list) {
  const Locked lock(list_.mutex_);
  place_ = list_.streams_.insert(list_.streams_.end(), Place{.server = server, .stop = {}});
}

ServerList::OpenStream::~OpenStream() {
  const Locked lock(list_.mutex_);
  list_.streams_.erase(place_);
}

}  // namespace turnstile::client
