#include "disk.h"

#include <utility>

namespace turnstile::sim {
namespace {

// What every file of one mount has in common.
struct Mount {
  DiskWeather& weather;
  Schedule& schedule;
  const uint64_t life;

  bool dead() const { return weather.life != life; }
  // Other things happen while this call waits.
  void wait(Duration longest) const {
    if (weather.quiet || dead()) return;
    schedule.interleave(Duration(schedule.random.between(0, longest.count())));
  }
  static std::unexpected<Error> gone() { return fail("the power is gone (simulated)"); }

  template <class Call>
  Result<void> change(const Call& call) const {
    if (schedule.random.chance(4)) wait(Duration(200));
    if (dead()) return gone();
    return call();
  }
  template <class Call>
  Result<void> sync(const Call& call) const {
    wait(weather.longest_sync);
    if (dead()) return gone();
    if (!weather.quiet && std::exchange(weather.next_sync_fails, false))
      return fail("input/output error (simulated)");
    Result<void> done = call();
    wait(Duration(100));  // the disk has it, but nobody has heard yet
    return done;
  }
};

class WeatheredFile final : public File {
 public:
  WeatheredFile(const Mount& mount, std::unique_ptr<File> file) : mount_(mount), file_(std::move(file)) {}

  Result<void> write_at(uint64_t offset, std::string_view bytes) override {
    return mount_.change([&] { return file_->write_at(offset, bytes); });
  }
  Result<size_t> read_at(uint64_t offset, std::span<char> into) override {
    return file_->read_at(offset, into);
  }
  Result<uint64_t> size() override { return file_->size(); }
  Result<void> truncate(uint64_t size) override {
    return mount_.change([&] { return file_->truncate(size); });
  }
  Result<void> sync() override {
    return mount_.sync([&] { return file_->sync(); });
  }

 private:
  const Mount mount_;
  const std::unique_ptr<File> file_;
};

class WeatheredDirectory final : public Directory {
 public:
  WeatheredDirectory(const Mount& mount, std::unique_ptr<Directory> directory)
      : mount_(mount), directory_(std::move(directory)) {}

  Result<std::vector<std::string>> list() override { return directory_->list(); }
  Result<std::unique_ptr<File>> create(const std::string& name) override {
    mount_.wait(Duration(100));
    if (mount_.dead()) return Mount::gone();
    return weathered(directory_->create(name));
  }
  Result<std::unique_ptr<File>> open(const std::string& name) override {
    return weathered(directory_->open(name));
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return mount_.change([&] { return directory_->rename(from, to); });
  }
  Result<void> remove(const std::string& name) override {
    return mount_.change([&] { return directory_->remove(name); });
  }
  Result<void> sync() override {
    return mount_.sync([&] { return directory_->sync(); });
  }
  std::string path_of(const std::string& name) const override { return directory_->path_of(name); }

 private:
  Result<std::unique_ptr<File>> weathered(Result<std::unique_ptr<File>> file) const {
    if (!file) return file;
    return std::make_unique<WeatheredFile>(mount_, *std::move(file));
  }

  const Mount mount_;
  const std::unique_ptr<Directory> directory_;
};

}  // namespace

std::unique_ptr<Directory> mount(testing::SimulatedDisk& disk, DiskWeather& weather, Schedule& schedule) {
  return std::make_unique<WeatheredDirectory>(Mount{weather, schedule, weather.life}, disk.mount());
}

}  // namespace turnstile::sim
