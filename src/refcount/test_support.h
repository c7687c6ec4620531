// What the tests of this folder share: a directory that goes away, and the three storages by name.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "turnstile/ref_count.h"

namespace turnstile::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "turnstile-refcount-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline Expected<std::unique_ptr<RefCountStorage>> open_storage(const std::string& kind,
                                                               const std::string& path) {
  if (kind == "file") return open_file_storage(path);
  if (kind == "sqlite") return open_sqlite_storage(path);
  return make_memory_storage();
}

// A storage that must open.
inline std::shared_ptr<RefCountStorage> must_open(const std::string& kind, const std::string& path) {
  auto opened = open_storage(kind, path);
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? std::move(*opened) : nullptr;
}

inline std::vector<std::string> resources_of(const RefCountStorage& storage) {
  std::vector<std::string> found;
  const auto walked = storage.for_each([&](const std::string& resource, const ReferenceCount&) {
    found.push_back(resource);
    return true;
  });
  EXPECT_TRUE(walked) << walked.error().message;
  return found;
}

using Nodes = std::set<std::string>;

inline Nodes nodes_of(const RefCountStorage& storage, const std::string& resource) {
  const auto count = storage.get(resource);
  EXPECT_TRUE(count) << count.error().message;
  return count ? count->nodes : Nodes{};
}

}  // namespace turnstile::testing
