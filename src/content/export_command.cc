// See export_command.h.
#include "content/export_command.h"

#include <fmt/format.h>

#include "base/log.h"
#include "content/command_progress.h"
#include "content/copying.h"
#include "content/node_state.h"
#include "content/verification.h"

namespace turnstile::content {
namespace {

class Export {
 public:
  Export(const BlobStore& blobs, const Directory& store, CommandProgress& progress)
      : blobs_(blobs), store_(store), progress_(progress) {}

  // False: it was there already.
  Outcome<bool> copy(const Digest& digest) const {
    const Outcome<Directory> to = directory_of(digest);
    if (!to) return std::unexpected(to.error());
    const std::string name(digest.hex()), unfinished = ".export-" + name;
    const auto read = [this](size_t bytes) {
      progress_.read(bytes);
      return true;
    };
    if (Outcome<UniqueFd> there = to->open_file(name, O_RDONLY); there) {
      const Outcome<bool> intact = is_intact({std::move(*there), 0}, digest, read);
      if (!intact) return intact;
      if (*intact) return false;
      if (const Outcome<void> removed = to->remove_file(name); !removed)
        return std::unexpected(removed.error());
    }
    const Outcome<OpenBlob> blob = blobs_.find(digest);
    if (!blob) return std::unexpected(blob.error());
    // Beside the blobs, not among them: containerd takes for a blob what is there.
    const Outcome<UniqueFd> file = store_.open_file(unfinished, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!file) return std::unexpected(file.error());
    const Outcome<void> written = write(*blob, file->get(), digest, read);
    const Outcome<void> moved = written ? store_.move_no_replace(unfinished, *to, name) : written;
    if (!moved) (void)store_.remove_file(unfinished);
    const Outcome<void> synced = moved ? to->sync() : moved;
    if (moved && !synced) (void)to->remove_file(name);  // the next try makes it anew, and syncs that
    if (!synced) return std::unexpected(synced.error());
    return true;
  }

 private:
  Outcome<Directory> directory_of(const Digest& digest) const {
    if (const Outcome<Directory> blobs = store_.open_or_make("blobs"); !blobs)
      return std::unexpected(blobs.error());
    return store_.open_or_make(blob_directory(digest));
  }

  static Outcome<void> write(const OpenBlob& blob, int to, const Digest& digest,
                             const std::function<void(size_t)>& read) {
    const Outcome<bool> copied = copy_verified(blob.fd.get(), to, digest, read);
    if (!copied) return std::unexpected(copied.error());
    if (!*copied) return fail(ErrorClass::failed_precondition, "the file holds other bytes");
    if (::fchmod(to, 0444) != 0) return fail_errno("change the mode of", digest.text(), errno);
    if (::fsync(to) != 0) return fail_errno("sync", digest.text(), errno);
    return {};
  }

  const BlobStore& blobs_;
  const Directory& store_;
  CommandProgress& progress_;
};

}  // namespace

int run_export(const Settings& settings) {
  set_log(settings.log_level, LogFormat::text);
  const Outcome<std::unique_ptr<const NodeState>> state = NodeState::open_to_look(settings.state);
  if (!state) return command_failed(state.error().message);
  const Outcome<BlobStore> blobs =
      BlobStore::open_to_look({settings.root, settings.read_roots, settings.node});
  if (!blobs) return command_failed(blobs.error().message);
  const Outcome<Directory> store = Directory::open_root(settings.of_command.to, true);
  if (!store) return command_failed(store.error().message);

  const std::vector<BlobInfo> all = (*state)->list();
  CommandProgress progress("export", all.size(), (*state)->totals().bytes);
  const Export to(*blobs, *store, progress);
  size_t copied = 0, there = 0, missing = 0;
  for (const BlobInfo& info : all) {
    const Outcome<bool> done = to.copy(info.digest);
    progress.blob_done();
    if (done) {
      ++(*done ? copied : there);
      continue;
    }
    ++missing;
    progress.say(fmt::format("{} not copied: {}", info.digest.text(), done.error().message));
    if (done.error().code == ErrorClass::resource_exhausted) break;
  }
  progress.say(fmt::format("{} blobs, {}: {} copied, {} there already, {} missing", all.size(),
                           show_bytes((*state)->totals().bytes), copied, there, all.size() - copied - there));
  return missing > 0 ? 1 : 0;
}

}  // namespace turnstile::content
