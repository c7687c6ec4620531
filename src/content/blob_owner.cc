// Whose uses are in uses/<node>.
//
// A plugin gives up every second name there that its --state does not know: a life that ended early has left
// it. So another machine of the same name must never come so far, not even while the one that has the name is
// cut off from the lock server, which cannot tell then.
#include <fmt/format.h>

#include "content/blob_store.h"

namespace turnstile::content {
namespace {

constexpr const char* kOwner = "owner";
constexpr size_t kMostBytes = 1024;

}  // namespace

Outcome<void> BlobStore::take_possession(const std::string& id, const std::string& machine) const {
  const std::string text = fmt::format("{}\n{}\n", id, machine),
                    unfinished = fmt::format(".{}.{}", kOwner, id);
  for (;;) {
    const Outcome<std::string> found = uses_.read_small(kOwner, kMostBytes);
    if (!found && found.error().code != ErrorClass::not_found) return std::unexpected(found.error());
    if (found && *found == text) return {};
    if (found && !found->starts_with(id + "\n")) {
      const size_t line = std::min(found->find('\n'), found->size() - 1);
      std::string who = found->substr(line + 1);
      if (who.ends_with('\n')) who.pop_back();
      return fail(
          ErrorClass::failed_precondition,
          fmt::format("{0} belongs to {1}: two nodes of one name would lose content. Give this one another "
                      "--node. If that one is gone for good, or its --state is, remove {0}/{2}, run "
                      "`turnstile refs --release-node {3}` and start again: what it used is given up then",
                      uses_.path(), who.empty() ? "another machine" : who, kOwner, node_));
    }
    const Outcome<UniqueFd> file = uses_.open_file(unfinished, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!file) return std::unexpected(file.error());
    if (const Outcome<void> written = write_at(file->get(), 0, text, kOwner); !written) return written;
    if (::fsync(file->get()) != 0) return fail_errno("sync", kOwner, errno);
    const Outcome<void> moved =
        found ? uses_.move(unfinished, uses_, kOwner) : uses_.move_no_replace(unfinished, uses_, kOwner);
    if (moved) return uses_.sync();
    if (moved.error().code != ErrorClass::already_exists) return moved;
    (void)uses_.remove_file(unfinished);  // somebody was faster: whose is it now?
  }
}

}  // namespace turnstile::content
