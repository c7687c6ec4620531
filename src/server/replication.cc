#include "server/replication.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "api/json_append.h"
#include "base/log.h"
#include "base/metrics_text.h"
#include "base/rfc3339.h"
#include "etcd/connect.h"

namespace turnstile {
namespace {

constexpr std::chrono::milliseconds kMembersWithin{1000};
constexpr std::chrono::seconds kLookEvery{5};

void field(std::string& out, std::string_view name, std::string_view text) {
  if (out.back() != '{') out += ',';
  append_json_text(out, name);
  out += ':';
  append_json_text(out, text);
}

void raw_field(std::string& out, std::string_view name, std::string_view json) {
  if (out.back() != '{') out += ',';
  append_json_text(out, name);
  out += ':';
  out += json;
}

}  // namespace

// 3.4 is what Debian 12 has, and the oldest that this was tried with.
Result<void> check_etcd_version(const std::vector<etcd::MemberStatus>& members) {
  for (const etcd::MemberStatus& each : members) {
    int major = 0, minor = 0;
    if (std::sscanf(each.version.c_str(), "%d.%d", &major, &minor) != 2) continue;
    if (major > 3 || (major == 3 && minor >= 4)) continue;
    return fail(
        fmt::format("etcd {} at {} is too old: this server needs 3.4 or newer", each.version, each.url));
  }
  return {};
}

Replication::Replication(const ReplicationSettings& settings, Common& common,
                         std::unique_ptr<etcd::Client> client)
    : settings_(settings), common_(common), client_(std::move(client)) {}

Result<std::unique_ptr<etcd::Client>> connect_to_etcd(const ReplicationSettings& settings) {
  etcd::Options options;
  options.endpoints = settings.endpoints;
  options.ca_file = settings.ca;
  options.cert_file = settings.cert;
  options.key_file = settings.key;
  options.user = settings.user;
  options.password = settings.password;
  auto client = etcd::connect(options);
  if (!client) return fail(client.error());
  return *std::move(client);
}

Result<std::unique_ptr<Replication>> Replication::make(const ReplicationSettings& settings, Common& common) {
  auto client = connect_to_etcd(settings);
  if (!client) return std::unexpected(client.error());
  std::unique_ptr<Replication> made(new Replication(settings, common, *std::move(client)));
  if (Result<void> fits = check_etcd_version(made->client_->members(kMembersWithin)); !fits)
    return std::unexpected(fits.error());
  return made;
}

Replication::~Replication() {
  looker_ = {};
  if (threads_) threads_->stop();
}

void Replication::prepare(const std::string& url, ReplicaOwner& owner) {
  url_ = url;
  name_ = url.substr(url.find("://") == std::string::npos ? 0 : url.find("://") + 3);
  std::replace(name_.begin(), name_.end(), '/', '_');
  ReplicaSettings replica;
  replica.prefix = settings_.prefix;
  replica.name = name_;
  replica.url = url_;
  replica.lease = std::chrono::duration_cast<std::chrono::seconds>(settings_.lease);
  replica_ = std::make_unique<Replica>(*client_, replica, owner, EtcdTiming::of_machine());
  if (settings_.forwards) {
    // The servers of one installation have one CA, which is the one that signs their clients' certificates.
    const auto leader = [this] {
      Common::Standing standing = common_.standing();
      return KnownLeader{std::move(standing.leader), standing.term};
    };
    forwarder_ = std::make_unique<Forwarder>(leader, settings_.lease, common_.settings().tls.client_ca);
    common_.forwarder = forwarder_.get();
  }
}

Result<void> Replication::start() {
  if (Result<void> right = replica_->check(); !right) return right;
  threads_ = std::make_unique<ReplicaThreads>(*replica_);
  looker_ = std::jthread([this](const std::stop_token& stop) { look_at_members(stop); });
  threads_->start();
  return {};
}

void Replication::hand_over() {
  if (threads_) threads_->stop();
  replica_->hand_over();
}

void Replication::look_at_members(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  while (!stop.stop_requested()) {
    std::vector<etcd::MemberStatus> seen = client_->members(kMembersWithin);
    {
      const Locked lock(mutex_);
      members_ = std::move(seen);
    }
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, kLookEvery, [] { return false; });
  }
}

bool Replication::etcd_is_full() const {
  const auto says_so = [](const etcd::MemberStatus& each) { return each.no_space; };
  return replica_->statistics().no_space() || std::ranges::any_of(members(), says_so);
}

std::string Replication::servers_json() const {
  const ReplicaView view = replica_->view();
  const bool leads = view.role == ReplicaRole::leader;
  std::string out = "{";
  field(out, "mode", "replicated");
  field(out, "role", leads ? "leader" : view.in_step ? "standby" : "none");
  field(out, "name", name_);
  field(out, "url", url_);
  if (view.leader.empty())
    raw_field(out, "leader", "null");
  else
    field(out, "leader", view.leader);
  raw_field(out, "term", fmt::to_string(view.term));
  out += R"(,"servers":[)";
  for (const ReplicaView::Server& each : view.servers) {
    if (out.back() != '[') out += ',';
    out += '{';
    field(out, "name", each.name);
    field(out, "url", each.url);
    // Its entry may be older than its term, or younger than its end.
    field(out, "role", each.url == view.leader ? "leader" : "standby");
    raw_field(out, "lag_batches", fmt::to_string(each.lag_batches));
    std::string since;
    append_rfc3339(since, each.since);
    field(out, "since", since);
    out += '}';
  }
  out += R"(],"etcd":{"members":[)";
  for (const etcd::MemberStatus& each : members()) {
    if (out.back() != '[') out += ',';
    out += '{';
    field(out, "url", each.url);
    raw_field(out, "healthy", each.healthy ? "true" : "false");
    field(out, "version", each.version);
    raw_field(out, "db_bytes", fmt::to_string(each.database_bytes));
    raw_field(out, "leader", each.leads ? "true" : "false");
    raw_field(out, "no_space", each.no_space ? "true" : "false");
    out += '}';
  }
  out += fmt::format(R"(],"errors":{},"commit_ms_p50":{:.3f}}}}})", replica_->statistics().errors(),
                     replica_->statistics().median_commit_ms());
  return out;
}

void Replication::append_metrics(std::string& out) const {
  const ReplicaView view = replica_->view();
  const EtcdStatistics& statistics = replica_->statistics();
  size_t standbys = 0;
  uint64_t lag = 0;
  for (const ReplicaView::Server& each : view.servers) {
    standbys += !each.leads;
    lag = std::max(lag, each.lag_batches);
  }
  MetricsText text(out);
  text.gauge("turnstile_leader", "1: this server leads");
  text.value(view.role == ReplicaRole::leader ? 1 : 0);
  text.gauge("turnstile_leader_known", "1: this server leads, or knows who does");
  text.value(view.leader.empty() ? 0 : 1);
  text.gauge("turnstile_in_step", "1: a standby that could take over at once");
  text.value(view.in_step ? 1 : 0);
  text.gauge("turnstile_term", "The term that this server leads in, or follows");
  text.value(double(view.term));
  text.counter("turnstile_terms_led_total", "Terms that this process has led in");
  text.value(double(view.terms_led));
  text.gauge("turnstile_standbys", "Servers that stand by");
  text.value(double(standbys));
  text.gauge("turnstile_replica_lag_batches",
             "How many new batches the slowest standby found when it looked, by its last report");
  text.value(double(lag));
  text.counter("turnstile_etcd_commits_total", "Transactions that etcd has confirmed to this server");
  text.value(double(statistics.commits()));
  text.counter("turnstile_etcd_errors_total", "Calls of etcd that failed");
  text.value(double(statistics.errors()));
  text.gauge("turnstile_etcd_no_space", "1: etcd has no space left, and takes no writes");
  text.value(etcd_is_full() ? 1 : 0);
  text.gauge("turnstile_etcd_commit_seconds", "Median of how long the latest commits took");
  text.value(statistics.median_commit_ms() / 1000);
  const std::vector<etcd::MemberStatus> seen = members();
  text.gauge("turnstile_etcd_member_healthy", "1: this member of etcd answers");
  for (const etcd::MemberStatus& each : seen) text.value("member", each.url, each.healthy ? 1 : 0);
  text.gauge("turnstile_etcd_database_bytes", "Size of this member's database");
  for (const etcd::MemberStatus& each : seen)
    if (each.healthy) text.value("member", each.url, double(each.database_bytes));
}

std::string single_server_json(const std::string& url, Time since) {
  const std::string name = url.substr(url.find("://") == std::string::npos ? 0 : url.find("://") + 3);
  std::string out = "{";
  field(out, "mode", "single");
  field(out, "role", "leader");
  field(out, "name", name);
  field(out, "url", url);
  field(out, "leader", url);
  out += R"(,"servers":[{)";
  field(out, "name", name);
  field(out, "url", url);
  field(out, "role", "leader");
  raw_field(out, "lag_batches", "0");
  std::string began;
  append_rfc3339(began, since);
  field(out, "since", began);
  return out + "}]}";
}

}  // namespace turnstile
