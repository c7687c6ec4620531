// See import_command.h.
//
// Of each blob: noted as leaving, so that a plugin which starts after a crash clears away what was begun;
// then a second name and the name that others see, in this order; then written down as in use.
#include "content/import_command.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "base/log.h"
#include "content/command_progress.h"
#include "content/copying.h"
#include "content/identity.h"
#include "content/node_state.h"
#include "content/verification.h"

namespace turnstile::content {
namespace {

// A file of containerd's.
struct Source {
  Digest digest;
  const Directory* directory;
  int64_t size = 0;
  Timestamp created{};
};

class Import {
 public:
  Import(const BlobStore& blobs, NodeState& state) : blobs_(blobs), state_(state) {}

  Outcome<void> find_sources(const std::string& from);
  int run();

 private:
  enum class How : uint8_t { there, adopted, linked, copied, damaged, unreadable, gone };
  static constexpr size_t kHows = size_t(How::gone) + 1;

  void find_source(const Directory& files, const std::string& name, const std::string& file);
  Outcome<How> import_blob(const Source& source);
  // What another node, or an import that was cut off, has published.
  Outcome<bool> adopt(const Digest& digest);
  Outcome<How> copy(const Source& source, const OpenBlob& blob);
  std::string summary() const;

  const BlobStore& blobs_;
  NodeState& state_;
  std::vector<Directory> directories_;
  std::vector<Source> sources_;
  int64_t bytes_ = 0;
  std::optional<CommandProgress> progress_;
  size_t counts_[kHows] = {};
  int64_t sizes_[kHows] = {};
};

Outcome<void> Import::find_sources(const std::string& from) {
  const Outcome<Directory> store = Directory::open_root(from, false);
  if (!store) return std::unexpected(store.error());
  directories_.reserve(2);  // sources point to them
  for (const Algorithm algorithm : {Algorithm::sha256, Algorithm::sha512}) {
    const std::string name(name_of(algorithm));
    Outcome<Directory> directory = store->open("blobs/" + name);
    if (!directory && directory.error().code == ErrorClass::not_found) continue;
    if (!directory) return std::unexpected(directory.error());
    directories_.push_back(std::move(*directory));
    const Directory& files = directories_.back();
    const Outcome<void> walked =
        files.for_each([&](const std::string& file) { find_source(files, name, file); });
    if (!walked) return walked;
  }
  if (directories_.empty())
    return fail(ErrorClass::not_found,
                fmt::format("{} has no blobs/sha256: is it a content store of containerd's?", from));
  return {};
}

void Import::find_source(const Directory& files, const std::string& name, const std::string& file) {
  const Outcome<Digest> digest = Digest::parse(fmt::format("{}:{}", name, file));
  if (!digest) return log_warning("blob not imported", {{"file", file}, {"error", digest.error().message}});
  const Outcome<UniqueFd> fd = files.open_file(file, O_RDONLY);
  const Outcome<struct stat> status = fd ? look_at(fd->get()) : std::unexpected(fd.error());
  if (!status) {
    if (!fd && fd.error().code == ErrorClass::not_found) return;  // removed just now
    ++counts_[size_t(How::unreadable)];
    fmt::print("{} cannot be read, and is not imported: {}\n", digest->text(), status.error().message);
    return;
  }
  sources_.push_back({*digest, &files, status->st_size, Timestamp::of(status->st_mtim)});
  bytes_ += status->st_size;
}

int Import::run() {
  progress_.emplace("import", sources_.size(), bytes_);
  for (const Source& source : sources_) {
    const Outcome<How> how = import_blob(source);
    if (!how) {
      progress_.reset();
      return command_failed(fmt::format("{}: {}; run this again when that is mended: what is done is kept",
                                        source.digest.text(), how.error().message));
    }
    progress_->blob_done();
    ++counts_[size_t(*how)];
    sizes_[size_t(*how)] += source.size;
    if (*how == How::gone)
      progress_->say(source.digest.text() + " was removed meanwhile: is containerd at work?");
    if (*how == How::damaged)
      progress_->say(fmt::format(
          "{} damaged: the file holds other bytes, and is not imported. Remove its image and pull it again",
          source.digest.text()));
  }
  progress_->say(summary());
  progress_.reset();
  return counts_[size_t(How::damaged)] + counts_[size_t(How::unreadable)] > 0 ? 1 : 0;
}

std::string Import::summary() const {
  std::string text;
  const std::pair<How, const char*> kinds[] = {{How::linked, "linked"},
                                               {How::copied, "copied"},
                                               {How::adopted, "in the root already"},
                                               {How::there, "this node's already"},
                                               {How::damaged, "damaged"},
                                               {How::gone, "removed meanwhile"}};
  for (const auto& [how, name] : kinds)
    if (counts_[size_t(how)] > 0)
      text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", counts_[size_t(how)], name,
                          show_bytes(sizes_[size_t(how)]));
  if (const size_t unreadable = counts_[size_t(How::unreadable)]; unreadable > 0)
    text += fmt::format("{}{} not readable", text.empty() ? "" : ", ", unreadable);
  return fmt::format("{} blobs: {}", sources_.size() + counts_[size_t(How::unreadable)],
                     text.empty() ? "nothing to do" : text);
}

Outcome<Import::How> Import::import_blob(const Source& source) {
  const Digest& digest = source.digest;
  if (state_.size_of(digest) == source.size && blobs_.find(digest)) {
    progress_->read(size_t(source.size));
    return How::there;
  }
  if (const Outcome<bool> noted = state_.note(digest); !noted) return std::unexpected(noted.error());
  // A removal of this node's that a crash has interrupted would be forgotten, now that the blob is in use.
  if (const Outcome<void> back = blobs_.bring_back(digest, false); !back)
    return std::unexpected(back.error());
  const Outcome<bool> adopted = adopt(digest);
  if (!adopted) return std::unexpected(adopted.error());
  How how = How::adopted;
  if (!*adopted) {
    const std::string name(digest.hex());
    Outcome<UniqueFd> fd = source.directory->open_file(name, O_RDONLY);
    if (!fd && fd.error().code == ErrorClass::not_found) return How::gone;
    if (!fd) return std::unexpected(fd.error());
    const OpenBlob blob{std::move(*fd), source.size};
    // One file system or not is only known when it is tried; hashing comes first, for what has a name is
    // used.
    const Outcome<bool> intact = is_intact(blob, digest, [&](size_t bytes) {
      progress_->read(bytes);
      return true;
    });
    if (!intact) return std::unexpected(intact.error());
    if (!*intact) return How::damaged;
    const Outcome<bool> linked = blobs_.take_over(*source.directory, name, digest);
    if (!linked) return std::unexpected(linked.error());
    const Outcome<How> done = *linked ? How::linked : copy(source, blob);
    if (!done) return done;
    how = *done;
  }
  const BlobInfo info{digest, source.size, source.created, source.created, {}};
  if (const Outcome<void> added = state_.add(info); !added) return std::unexpected(added.error());
  return how;
}

// With a second name first: from then on nobody can take away what is looked at.
Outcome<bool> Import::adopt(const Digest& digest) {
  const Outcome<bool> guarded = blobs_.guard(digest);
  if (!guarded && guarded.error().code == ErrorClass::not_found) return false;
  if (!guarded) return std::unexpected(guarded.error());
  // On another node's disk, or without a second name: what others may remove is not relied on.
  if (!*guarded) return false;
  const Outcome<OpenBlob> blob = blobs_.find(digest);
  if (!blob) return std::unexpected(blob.error());
  const Outcome<bool> intact = is_intact(*blob, digest, [&](size_t bytes) {
    progress_->read(bytes);
    return true;
  });
  if (!intact || *intact) return intact;
  log_error("a blob in the root holds other bytes; put away, and replaced", {{"digest", digest.text()}});
  if (const Outcome<bool> away = blobs_.put_damaged_away(digest, *blob); !away)
    return std::unexpected(away.error());
  return false;
}

Outcome<Import::How> Import::copy(const Source& source, const OpenBlob& blob) {
  const std::string ref = "import-" + source.digest.text();
  if (const Outcome<void> dropped = blobs_.drop_ingest(ref); !dropped)
    return std::unexpected(dropped.error());
  Outcome<Ingest> ingest = blobs_.open_ingest(ref, source.size, source.digest.text());
  if (!ingest) return std::unexpected(ingest.error());
  const Outcome<bool> copied = copy_verified(blob.fd.get(), ingest->data.get(), source.digest, [](size_t) {});
  const bool good = copied && *copied;
  const Outcome<void> published = good ? blobs_.publish(*ingest, source.digest) : Outcome<void>();
  (void)blobs_.drop_ingest(ref);
  if (!copied) return std::unexpected(copied.error());
  if (!good) return How::damaged;
  // Where there are no links, the same bytes may be there from another node.
  if (!published && published.error().code != ErrorClass::already_exists)
    return std::unexpected(published.error());
  return How::copied;
}

// containerd locks its database while it runs.
bool is_containerd_running(const std::string& from) {
  const std::string path = from + "/../io.containerd.metadata.v1.bolt/meta.db";
  const UniqueFd database(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return database.is_open() && ::flock(database.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

int run_import(const Settings& settings) {
  set_log(settings.log_level, LogFormat::text);
  const std::string& from = settings.of_command.from;
  const Outcome<std::unique_ptr<NodeState>> state = NodeState::open(settings.state);
  if (!state)
    return command_failed(state.error().message + (state.error().code == ErrorClass::unavailable
                                                       ? ": stop turnstile-content first"
                                                       : ""));
  std::error_code ignored;
  if (!std::filesystem::is_directory(from, ignored))
    return command_failed(fmt::format("--from {}: there is no such directory", from));
  if (std::filesystem::equivalent(from, settings.root, ignored))
    return command_failed("--from is --root itself: name containerd's own store");
  const Outcome<BlobStore> blobs =
      BlobStore::open({settings.root, settings.read_roots, settings.node, !(*state)->is_empty()});
  if (!blobs) return command_failed(blobs.error().message);
  if (const Outcome<void> ours =
          blobs->take_possession((*state)->id(), identity_of(settings.state).for_people);
      !ours)
    return command_failed(ours.error().message);
  // What is imported is not counted yet: others must not take this node at its word of before.
  if (const Outcome<void> said = blobs->set_confirmed_by({}); !said)
    return command_failed(said.error().message);
  const bool running = is_containerd_running(from);
  Import import(*blobs, **state);
  if (const Outcome<void> found = import.find_sources(from); !found)
    return command_failed(found.error().message);
  const int code = import.run();
  if (!blobs->guards_all() && settings.read_roots.empty())
    fmt::print(
        "there are no hard links in {}: start turnstile-content before an image is removed on another node\n",
        settings.root);
  if (running)
    fmt::print("containerd is running: stop it and run this again, for what it pulls is not imported\n");
  return code;
}

}  // namespace turnstile::content
