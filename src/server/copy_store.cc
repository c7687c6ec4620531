#include "server/copy_store.h"

#include <fmt/format.h>

#include <memory>
#include <thread>

#include "journal/inspection.h"
#include "journal/journal.h"
#include "replica/replica.h"
#include "replica/replica_threads.h"
#include "server/replication.h"

namespace turnstile {
namespace {

// A store that is open for as long as this lives. In etcd that is a term of its own: so no server can be
// leading meanwhile.
class OpenStore final : public ReplicaOwner {
 public:
  ~OpenStore() override {
    journal_.reset();
    if (threads_) threads_->stop();
    if (replica_) replica_->hand_over();
  }

  Result<void> open(const std::string& store, ReplicationSettings replication) {
    if (store.starts_with("file:")) {
      directory_ = store.substr(sizeof "file:" - 1);
      auto opened = open_file_journal(directory_, {});
      if (!opened) return std::unexpected(opened.error());
      journal_ = *std::move(opened);
      return {};
    }
    if (!store.starts_with("etcd"))
      return fail(fmt::format("'{}' cannot be copied: write file:DIR or etcd://…", store));
    if (Result<void> parsed = parse_etcd_store(replication, store); !parsed) return parsed;
    auto client = connect_to_etcd(replication);
    if (!client) return std::unexpected(client.error());
    client_ = *std::move(client);
    ReplicaSettings settings;
    settings.prefix = replication.prefix;
    settings.name = "copy-store";
    settings.url = "copy-store";
    settings.lease = std::chrono::duration_cast<std::chrono::seconds>(replication.lease);
    replica_ = std::make_unique<Replica>(*client_, settings, *this, EtcdTiming::of_machine());
    if (Result<void> right = replica_->check(); !right) return right;
    replica_->turn();
    const ReplicaView view = replica_->view();
    if (journal_ == nullptr && !view.leader.empty())
      return fail(fmt::format("{}: a server leads, {}: stop all of them first", store, view.leader));
    if (journal_ == nullptr && !view.problem.empty()) return fail(fmt::format("{}: {}", store, view.problem));
    if (journal_ == nullptr)
      return fail(fmt::format(
          "{}: a copy-store is at work there, or was interrupted a few seconds ago: try again in ten",
          store));
    threads_ = std::make_unique<ReplicaThreads>(*replica_);
    threads_->start();
    return {};
  }
  Journal& journal() { return *journal_; }

  // A server refuses what is there, until end_copy(): whoever interrupts this leaves a part.
  Result<void> begin_copy() {
    return replica_ ? replica_->write_format(kEtcdCopying) : begin_copy_into(directory_);
  }
  Result<void> end_copy() {
    return replica_ ? replica_->write_format(kEtcdFormat) : end_copy_into(directory_);
  }

 private:
  Result<void> begin_life(std::unique_ptr<Journal> journal) override {
    journal_ = std::move(journal);
    return {};
  }
  void end_life() override {}  // what is written then fails, and says so
  void tell(const ReplicaView&) override {}

  std::string directory_;
  std::unique_ptr<etcd::Client> client_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<ReplicaThreads> threads_;
  std::unique_ptr<Journal> journal_;
};

// To open a directory that is not there makes one, and what comes of a typing error would look like a copy.
Result<void> check_source(const std::string& store) {
  if (!store.starts_with("file:")) return {};
  const auto seen = see_directory(store.substr(sizeof "file:" - 1));
  if (!seen) return std::unexpected(seen.error());
  return {};
}

}  // namespace

Result<uint64_t> copy_store(const Settings& settings) {
  if (settings.copy_from == settings.store)
    return fail(fmt::format("{} cannot be copied into itself", settings.store));
  if (Result<void> there = check_source(settings.copy_from); !there) return std::unexpected(there.error());
  OpenStore from, to;
  if (Result<void> opened = from.open(settings.copy_from, settings.replication); !opened)
    return std::unexpected(opened.error());
  if (Result<void> opened = to.open(settings.store, settings.replication); !opened)
    return std::unexpected(opened.error());
  const auto there = to.journal().recover([](const Record&) {});
  if (!there) return std::unexpected(there.error());
  if (there->records > 0)
    return fail(fmt::format("{} is not empty: it has {} records, and nothing was changed", settings.store,
                            there->records));
  if (Result<void> begun = to.begin_copy(); !begun) return std::unexpected(begun.error());
  Mutex mutex;
  std::optional<Error> failed;
  to.journal().start([](uint64_t) {},
                     [&](const Error& error) {
                       const Locked lock(mutex);
                       failed = error;
                     });
  const auto has_failed = [&] {
    const Locked lock(mutex);
    return failed;
  };
  uint64_t last = 0;
  const auto copied = from.journal().recover([&](const Record& record) {
    last = to.journal().append({&record, 1}, Time{});
    while (to.journal().overloaded() && !has_failed())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto in_part = [&](const Error& error) -> Result<uint64_t> {
    if (last == 0) {
      (void)to.end_copy();  // nothing was written, and it may be tried again
      return std::unexpected(error);
    }
    return fail(fmt::format("{} has only a part of it, and no server starts on that: remove it. {}",
                            settings.store, error.message));
  };
  if (!copied) return in_part(copied.error());
  if (copied->records == 0) {
    (void)to.end_copy();
    return fail(fmt::format("{} is empty, and every store that a server has used is not: name that one",
                            settings.copy_from));
  }
  Record mark;  // says nothing, and carries the time that the next life begins behind
  mark.kind = RecordKind::event_mark;
  last = to.journal().append({&mark, 1}, copied->latest);
  to.journal().stop();
  if (const std::optional<Error> error = has_failed()) return in_part(*error);
  if (to.journal().durable() < last) return in_part({"not all was written"});
  if (Result<void> ended = to.end_copy(); !ended) return in_part(ended.error());
  return copied->records;
}

}  // namespace turnstile
