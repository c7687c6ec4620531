// A disk for tests: in memory, failing when told to, and forgetting at a crash what was not synced.
//
// At a crash each sector that was written since the last sync is on the disk or not, by a coin; the same goes
// for each change of a name since the directory's last sync. That is more than real disks do, and what the
// journal promises to survive.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/sync.h"
#include "journal/file.h"

namespace turnstile::testing {

enum class DiskCall { create, write, truncate, sync, rename, remove, sync_directory };

// Threads: any. The directories that mount() gives out must not outlive it.
class SimulatedDisk {
 public:
  // Whether the call fails; `index` counts all calls that change something. A write that fails may have been
  // done.
  using Fault = std::function<bool(DiskCall call, const std::string& name, uint64_t index)>;

  std::unique_ptr<Directory> mount();

  void set_fault(Fault fault);
  uint64_t calls() const;
  void crash(uint64_t seed);
  void crash_losing_all_unsynced();

  std::vector<std::string> names() const;
  std::string content(const std::string& name) const;
  // Puts a file there, synced.
  void put(const std::string& name, std::string content);
  void erase(const std::string& name);

 private:
  friend class SimulatedFile;
  friend class SimulatedDirectory;

  struct Change {
    bool cut = false;
    uint64_t offset = 0;  // or, with cut, the new size
    std::string bytes;
  };
  struct Node {
    std::string now, synced;
    std::vector<Change> unsynced;
  };
  struct Rename {
    std::string from, to;  // an empty `from`: creation of `node`; an empty `to`: removal
    std::shared_ptr<Node> node;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  void lose(const std::function<bool()>& reached_disk);
  static void apply(std::string& content, const Change& change);
  static void apply(Names& names, const Rename& change);
  // Counts the call; an error if it is to fail.
  Result<void> enter(DiskCall call, const std::string& name) TS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Fault fault_ TS_GUARDED_BY(mutex_);
  uint64_t calls_ TS_GUARDED_BY(mutex_) = 0;
  Names now_ TS_GUARDED_BY(mutex_), synced_ TS_GUARDED_BY(mutex_);
  std::vector<Rename> unsynced_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::testing
