// The client that speaks gRPC: each call of the interface as etcd's message, and back.
#include <fmt/format.h>
#include <grpc/support/log.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "base/file_text.h"
#include "base/log.h"
#include "etcd/connect.h"
#include "etcd/failures.h"
#include "etcd/grpc_watch.h"
#include "etcd/members.h"

namespace turnstile::etcd {
namespace {

using Kind = Members::Kind;
using Repeat = Members::Repeat;
namespace pb = etcdserverpb;

class GrpcClient final : public Client {
 public:
  explicit GrpcClient(std::unique_ptr<Members> members) : members_(std::move(members)) {}

  Answer<RangeAnswer> range(const RangeRequest& request, Timeout within) override {
    pb::RangeRequest wish;
    wish.set_key(request.begin);
    wish.set_range_end(request.end);
    wish.set_revision(request.at);
    wish.set_limit(int64_t(request.limit));
    wish.set_keys_only(request.keys_only);
    pb::RangeResponse told;
    auto asked = members_->ask(Kind::reads, Repeat::harmless, within, [&](Member& member, Asking& asking) {
      told.Clear();
      return member.kv->Range(&asking.context, wish, &told);
    });
    if (!asked) {
      if (asked.error().failure == Failure::unknown)
        asked.error().failure = Failure::not_done;  // it changes nothing
      return std::unexpected(std::move(asked.error()));
    }
    RangeAnswer answer{.values = {}, .revision = told.header().revision(), .more = told.more()};
    answer.values.reserve(size_t(told.kvs_size()));
    for (pb::KeyValue& each : *told.mutable_kvs()) answer.values.push_back(taken(each));
    return answer;
  }

  Answer<TransactionAnswer> commit(const Transaction& transaction, Timeout within) override {
    pb::TxnRequest wish;
    for (const Guard& guard : transaction.guards) {
      pb::Compare& compare = *wish.add_compare();
      compare.set_target(pb::Compare::CREATE);
      compare.set_key(guard.key);
      compare.set_create_revision(guard.expected);
    }
    for (const Erase& erase : transaction.erases) {
      pb::DeleteRangeRequest& one = *wish.add_success()->mutable_request_delete_range();
      one.set_key(erase.begin);
      one.set_range_end(erase.end);
    }
    for (const Put& put : transaction.puts) {
      pb::PutRequest& one = *wish.add_success()->mutable_request_put();
      one.set_key(put.key);
      one.set_value(put.value);
      one.set_lease(int64_t(put.lease));
    }
    pb::TxnResponse told;
    const auto asked = members_->ask(
        Kind::changes, Repeat::never, within,
        [&](Member& member, Asking& asking) { return members_->transact(member, asking, wish, told); });
    if (!asked) return std::unexpected(asked.error());
    return TransactionAnswer{told.succeeded(), told.header().revision()};
  }

  Answer<LeaseAnswer> grant(std::chrono::seconds ttl, Timeout within) override {
    pb::LeaseGrantRequest wish;
    wish.set_ttl(ttl.count());
    pb::LeaseGrantResponse told;
    const auto asked =
        members_->ask(Kind::changes, Repeat::never, within, [&](Member& member, Asking& asking) {
          return member.lease->LeaseGrant(&asking.context, wish, &told);
        });
    if (!asked) return std::unexpected(asked.error());
    return LeaseAnswer{LeaseId(told.id()), std::chrono::seconds(told.ttl())};
  }

  // A stream in etcd's protocol; here one of a single word each way.
  Answer<std::chrono::seconds> keep_alive(LeaseId lease, Timeout within) override {
    pb::LeaseKeepAliveRequest wish;
    wish.set_id(int64_t(lease));
    pb::LeaseKeepAliveResponse told;
    const auto asked =
        members_->ask(Kind::changes, Repeat::harmless, within, [&](Member& member, Asking& asking) {
          told.Clear();
          const auto stream = member.lease->LeaseKeepAlive(&asking.context);
          stream->Write(wish);
          const bool heard = stream->Read(&told);
          if (heard) asking.context.TryCancel();
          const grpc::Status status = stream->Finish();
          if (heard) return grpc::Status::OK;
          return status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "hung up") : status;
        });
    if (!asked) return std::unexpected(asked.error());
    if (told.ttl() <= 0)
      return std::unexpected(CallError{Failure::gone, "etcd: the lease is not there any more"});
    return std::chrono::seconds(told.ttl());
  }

  Answer<void> revoke(LeaseId lease, Timeout within) override {
    pb::LeaseRevokeRequest wish;
    wish.set_id(int64_t(lease));
    pb::LeaseRevokeResponse told;
    return members_->ask(Kind::changes, Repeat::never, within, [&](Member& member, Asking& asking) {
      return member.lease->LeaseRevoke(&asking.context, wish, &told);
    });
  }

  std::unique_ptr<Watch> watch(const std::string& begin, const std::string& end, Revision from,
                               OnWatch on_events, std::function<void(CallError)> on_lost) override {
    return make_watch(*members_, begin, end, from, std::move(on_events), std::move(on_lost));
  }

  Answer<void> compact(Revision revision, Timeout within) override {
    pb::CompactionRequest wish;
    wish.set_revision(revision);
    pb::CompactionResponse told;
    return members_->ask(Kind::changes, Repeat::never, within, [&](Member& member, Asking& asking) {
      return member.kv->Compact(&asking.context, wish, &told);
    });
  }

  std::vector<MemberStatus> members(Timeout within) override {
    const SteadyTime deadline = std::chrono::steady_clock::now() + within;
    std::vector<MemberStatus> all(members_->count());
    std::vector<std::jthread> threads;  // one that is away must not take the others' time
    for (size_t i = 0; i < all.size(); ++i)
      threads.emplace_back([this, i, deadline, &all] { all[i] = status(members_->at(i), deadline); });
    threads.clear();
    return all;
  }

 private:
  static KeyValue taken(pb::KeyValue& from) {
    return {.key = std::move(*from.mutable_key()),
            .value = std::move(*from.mutable_value()),
            .create_revision = from.create_revision(),
            .mod_revision = from.mod_revision(),
            .lease = LeaseId(from.lease())};
  }

  MemberStatus status(Member& member, SteadyTime deadline) {
    MemberStatus status;
    status.url = member.url;
    if (!members_->connect(member, deadline)) {
      status.error = "no connection in time";
      return status;
    }
    pb::StatusResponse told;
    const auto failed = members_->ask_one(member, deadline, [&](Member& one, Asking& asking) {
      return one.maintenance->Status(&asking.context, {}, &told);
    });
    if (failed) {
      status.error = failed->message;
      return status;
    }
    status.version = told.version();
    status.database_bytes = told.dbsize();
    status.used_bytes = told.dbsizeinuse();
    status.leads = told.leader() != 0 && told.leader() == told.header().member_id();
    status.no_space = std::ranges::any_of(
        told.errors(), [](const std::string& each) { return each.find("NOSPACE") != std::string::npos; });
    status.healthy = told.leader() != 0;
    if (!status.healthy) status.error = "it knows no leader";
    return status;
  }

  const std::unique_ptr<Members> members_;  // outlives all watches: whoever has one must end it first
};

std::expected<std::string, std::string> text_of(const std::string& path, const char* setting) {
  if (path.empty()) return std::string();
  std::optional<std::string> text = file_text(path);
  if (!text || text->empty()) return std::unexpected(fmt::format("etcd's {}: cannot read {}", setting, path));
  return *std::move(text);
}

std::expected<std::shared_ptr<grpc::ChannelCredentials>, std::string> credentials(const Options& options,
                                                                                  bool secure) {
  const bool any_file = !options.ca_file.empty() || !options.cert_file.empty() || !options.key_file.empty();
  if (!secure && any_file)
    return std::unexpected("etcd: certificates are given, but its members are named by http");
  if (!secure) return grpc::InsecureChannelCredentials();
  if (options.cert_file.empty() != options.key_file.empty())
    return std::unexpected("etcd: a certificate needs its key, and a key its certificate");
  auto ca = text_of(options.ca_file, "CA");
  if (!ca) return std::unexpected(ca.error());
  auto cert = text_of(options.cert_file, "certificate");
  if (!cert) return std::unexpected(cert.error());
  auto key = text_of(options.key_file, "key");
  if (!key) return std::unexpected(key.error());
  return grpc::SslCredentials({.pem_root_certs = *ca, .pem_private_key = *key, .pem_cert_chain = *cert});
}

// What gRPC itself would print, each as a line of its own kind. Errors that matter come back with the calls.
void keep_grpc_quiet() {
  static const bool once = [] {
    gpr_set_log_function([](gpr_log_func_args* args) {
      if (log_enabled(LogLevel::debug)) log_line(LogLevel::debug, "gRPC", {{"text", args->message}});
    });
    return true;
  }();
  (void)once;
}

}  // namespace

std::expected<std::unique_ptr<Client>, std::string> connect(const Options& options) {
  if (options.endpoints.empty()) return std::unexpected("etcd: no member is named");
  bool secure = false, plain = false;
  for (const std::string& url : options.endpoints) {
    const bool https = url.starts_with("https://");
    const size_t at = url.find("://");
    if ((!https && !url.starts_with("http://")) || url.find('/', at + 3) != std::string::npos ||
        url.find(':', at + 3) == std::string::npos)
      return std::unexpected(fmt::format("etcd: {} is not http://HOST:PORT or https://HOST:PORT", url));
    (https ? secure : plain) = true;
  }
  if (secure && plain) return std::unexpected("etcd: all members must be named by http, or all by https");
  if (options.user.empty() != options.password.empty())
    return std::unexpected("etcd: a user needs a password, and a password a user");
  keep_grpc_quiet();
  auto made = credentials(options, secure);
  if (!made) return std::unexpected(made.error());
  return std::make_unique<GrpcClient>(std::make_unique<Members>(options, *made));
}

}  // namespace turnstile::etcd
