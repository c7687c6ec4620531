// See unsettled.h.
#include "content/unsettled.h"

#include "base/check.h"
#include "base/log.h"

namespace turnstile::content {
namespace {

constexpr const char* kSchema = R"(
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS unsettled (digest TEXT PRIMARY KEY) WITHOUT ROWID;
)";

// Before it is tried again, or for the first time: whoever has just given up often comes again at once.
constexpr std::chrono::seconds kLater{3};

}  // namespace

Outcome<std::shared_ptr<Unsettled>> Unsettled::open(const std::string& directory) {
  Outcome<Database> database = Database::open(directory + "/unsettled.db");
  if (!database) return std::unexpected(database.error());
  if (const Outcome<void> made = database->run(kSchema); !made) return std::unexpected(made.error());
  std::shared_ptr<Unsettled> unsettled(new Unsettled(std::move(*database)));
  if (const Outcome<void> loaded = unsettled->load(); !loaded) return std::unexpected(loaded.error());
  return unsettled;
}

Outcome<void> Unsettled::load() {
  const Locked lock(mutex_);
  Statement rows(database_, "SELECT digest FROM unsettled");
  Outcome<bool> row = false;
  while ((row = rows.step()) && *row)
    if (const Outcome<Digest> digest = Digest::parse(rows.text(0)); digest) {
      Entry& entry = entries_[*digest];
      entry.marked = entry.stored = true;
    }
  if (!row) return std::unexpected(row.error());
  return {};
}

void Unsettled::Claim::end() {
  if (const std::shared_ptr<Unsettled> owner = std::move(owner_)) owner->end(*digest_, settling_, settled_);
  owner_ = nullptr;
}

Unsettled::Claim Unsettled::use(const Digest& digest) {
  const Locked lock(mutex_);
  Entry& entry = entries_[digest];
  if (entry.settling) return {};
  ++entry.uses;
  return {shared_from_this(), digest, false};
}

Unsettled::Claim Unsettled::settle(const Digest& digest) {
  const Locked lock(mutex_);
  Entry& entry = entries_[digest];
  if (entry.settling || entry.uses > 0) return {};
  entry.settling = true;
  entry.marked = false;  // the row stays until it is settled
  return {shared_from_this(), digest, true};
}

std::optional<std::pair<Digest, Unsettled::Claim>> Unsettled::settle_next(Clock::time_point now) {
  const Locked lock(mutex_);
  for (auto& [digest, entry] : entries_) {
    if (!entry.marked || entry.settling || entry.uses > 0 || entry.due > now) continue;
    entry.settling = true;
    entry.marked = false;
    return std::pair(digest, Claim(shared_from_this(), digest, true));
  }
  return std::nullopt;
}

void Unsettled::mark(const Digest& digest) {
  const Locked lock(mutex_);
  put_down(digest, entries_[digest], Clock::now());
}

void Unsettled::mark_all(const std::vector<Digest>& digests) {
  const Locked lock(mutex_);
  for (const Digest& digest : digests) entries_[digest].marked = true;
}

size_t Unsettled::count() const {
  const Locked lock(mutex_);
  size_t count = 0;
  for (const auto& [digest, entry] : entries_) count += entry.marked || entry.settling;
  return count;
}

void Unsettled::end(const Digest& digest, bool settling, bool settled) {
  const Locked lock(mutex_);
  Entry& entry = entries_.at(digest);
  if (settling) {
    TS_CHECK(entry.settling, "one settles at a time");
    entry.settling = false;
  } else {
    --entry.uses;
  }
  if (!settled) {
    put_down(digest, entry, Clock::now() + kLater);
  } else if (settling && !entry.marked) {
    strike_out(digest, entry);
  }
  if (!entry.marked && !entry.settling && entry.uses == 0) entries_.erase(digest);
}

// A row that cannot be written costs a reference too many after a crash, never one too few; so it is no
// error.
void Unsettled::put_down(const Digest& digest, Entry& entry, Clock::time_point due) {
  entry.marked = true;
  entry.due = due;
  if (entry.stored) return;
  Statement insert(database_, "INSERT OR IGNORE INTO unsettled VALUES (?)");
  const Outcome<void> done = insert.bind(digest.text()).run();
  entry.stored = done.has_value();
  if (!done)
    log_warning("cannot be noted for later", {{"digest", digest.text()}, {"error", done.error().message}});
}

void Unsettled::strike_out(const Digest& digest, Entry& entry) {
  if (!entry.stored) return;
  Statement remove(database_, "DELETE FROM unsettled WHERE digest = ?");
  const Outcome<void> done = remove.bind(digest.text()).run();
  entry.stored = !done;
  if (!done) log_warning("a note stays behind", {{"digest", digest.text()}, {"error", done.error().message}});
}

}  // namespace turnstile::content
