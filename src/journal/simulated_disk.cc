#include "journal/simulated_disk.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "journal/batch.h"

namespace turnstile::testing {

class SimulatedFile final : public File {
 public:
  SimulatedFile(SimulatedDisk& disk, std::string name, std::shared_ptr<SimulatedDisk::Node> node)
      : disk_(disk), name_(std::move(name)), node_(std::move(node)) {}

  Result<void> write_at(uint64_t offset, std::string_view bytes) override {
    return change(DiskCall::write, {false, offset, std::string(bytes)});
  }
  Result<void> truncate(uint64_t size) override { return change(DiskCall::truncate, {true, size, {}}); }
  Result<size_t> read_at(uint64_t offset, std::span<char> into) override {
    Locked lock(disk_.mutex_);
    if (offset >= node_->now.size()) return 0;
    const size_t size = std::min<size_t>(into.size(), node_->now.size() - offset);
    std::memcpy(into.data(), node_->now.data() + offset, size);
    return size;
  }
  Result<uint64_t> size() override {
    Locked lock(disk_.mutex_);
    return node_->now.size();
  }
  Result<void> sync() override {
    Locked lock(disk_.mutex_);
    if (auto done = disk_.enter(DiskCall::sync, name_); !done) return done;
    for (const auto& change : node_->unsynced) SimulatedDisk::apply(node_->synced, change);
    node_->unsynced.clear();
    return {};
  }

 private:
  Result<void> change(DiskCall call, SimulatedDisk::Change change) {
    Locked lock(disk_.mutex_);
    const auto entered = disk_.enter(call, name_);
    SimulatedDisk::apply(node_->now, change);
    node_->unsynced.push_back(std::move(change));
    return entered;
  }

  SimulatedDisk& disk_;
  const std::string name_;
  const std::shared_ptr<SimulatedDisk::Node> node_;
};

class SimulatedDirectory final : public Directory {
 public:
  explicit SimulatedDirectory(SimulatedDisk& disk) : disk_(disk) {}

  Result<std::vector<std::string>> list() override { return disk_.names(); }
  Result<std::unique_ptr<File>> create(const std::string& name) override {
    Locked lock(disk_.mutex_);
    if (auto done = disk_.enter(DiskCall::create, name); !done) return std::unexpected(done.error());
    auto& node = disk_.now_[name];
    if (node) {  // O_TRUNC keeps the file and cuts its content
      SimulatedDisk::apply(node->now, {true, 0, {}});
      node->unsynced.push_back({true, 0, {}});
    } else {
      node = std::make_shared<SimulatedDisk::Node>();
      disk_.unsynced_.push_back({"", name, node});
    }
    return std::make_unique<SimulatedFile>(disk_, name, node);
  }
  Result<std::unique_ptr<File>> open(const std::string& name) override {
    Locked lock(disk_.mutex_);
    const auto found = disk_.now_.find(name);
    if (found == disk_.now_.end()) return fail("no such file: " + name);
    return std::make_unique<SimulatedFile>(disk_, name, found->second);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return change(DiskCall::rename, from, to);
  }
  Result<void> remove(const std::string& name) override { return change(DiskCall::remove, name, ""); }
  Result<void> sync() override {
    Locked lock(disk_.mutex_);
    if (auto done = disk_.enter(DiskCall::sync_directory, ""); !done) return done;
    for (const auto& change : disk_.unsynced_) SimulatedDisk::apply(disk_.synced_, change);
    disk_.unsynced_.clear();
    return {};
  }
  std::string path_of(const std::string& name) const override { return "disk/" + name; }

 private:
  Result<void> change(DiskCall call, const std::string& from, const std::string& to) {
    Locked lock(disk_.mutex_);
    const auto entered = disk_.enter(call, from);
    const auto found = disk_.now_.find(from);
    if (found == disk_.now_.end()) return fail("no such file: " + from);
    const SimulatedDisk::Rename change{from, to, found->second};
    SimulatedDisk::apply(disk_.now_, change);
    disk_.unsynced_.push_back(change);
    return entered;
  }

  SimulatedDisk& disk_;
};

std::unique_ptr<Directory> SimulatedDisk::mount() { return std::make_unique<SimulatedDirectory>(*this); }

void SimulatedDisk::set_fault(Fault fault) {
  Locked lock(mutex_);
  fault_ = std::move(fault);
}

uint64_t SimulatedDisk::calls() const {
  Locked lock(mutex_);
  return calls_;
}

Result<void> SimulatedDisk::enter(DiskCall call, const std::string& name) {
  const uint64_t index = calls_++;
  if (fault_ && fault_(call, name, index)) return fail("No space left on device (simulated)");
  return {};
}

void SimulatedDisk::apply(std::string& content, const Change& change) {
  if (change.cut) return content.resize(change.offset);
  if (content.size() < change.offset + change.bytes.size())
    content.resize(change.offset + change.bytes.size());
  content.replace(change.offset, change.bytes.size(), change.bytes);
}

void SimulatedDisk::apply(Names& names, const Rename& change) {
  if (!change.from.empty()) names.erase(change.from);
  if (!change.to.empty()) names[change.to] = change.node;
}

void SimulatedDisk::crash(uint64_t seed) {
  std::mt19937_64 random(seed);
  // Besides fair coins, the two extremes: nothing that was not synced is there, or all of it.
  const unsigned odds = unsigned(random() % 5);
  lose([&] { return odds == 0 ? false : odds == 4 ? true : random() % 4 < odds; });
}

void SimulatedDisk::crash_losing_all_unsynced() {
  lose([] { return false; });
}

void SimulatedDisk::lose(const std::function<bool()>& reached_disk) {
  Locked lock(mutex_);
  for (const Rename& change : unsynced_)
    if (reached_disk()) apply(synced_, change);
  unsynced_.clear();
  for (auto& [name, node] : synced_) {
    for (const Change& change : node->unsynced) {
      if (change.cut && reached_disk()) apply(node->synced, change);
      for (size_t at = 0; at < change.bytes.size();) {
        const uint64_t offset = change.offset + at;
        const size_t size = std::min<size_t>(change.bytes.size() - at, kSectorBytes - offset % kSectorBytes);
        if (reached_disk()) apply(node->synced, {false, offset, change.bytes.substr(at, size)});
        at += size;
      }
    }
    node->unsynced.clear();
    node->now = node->synced;
  }
  now_ = synced_;
  fault_ = nullptr;
}

std::vector<std::string> SimulatedDisk::names() const {
  Locked lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, node] : now_) names.push_back(name);
  return names;
}

std::string SimulatedDisk::content(const std::string& name) const {
  Locked lock(mutex_);
  const auto found = now_.find(name);
  return found == now_.end() ? std::string() : found->second->now;
}

void SimulatedDisk::put(const std::string& name, std::string content) {
  Locked lock(mutex_);
  auto node = std::make_shared<Node>();
  node->now = node->synced = std::move(content);
  now_[name] = synced_[name] = node;
}

void SimulatedDisk::erase(const std::string& name) {
  Locked lock(mutex_);
  now_.erase(name);
  synced_.erase(name);
}

}  // namespace turnstile::testing
