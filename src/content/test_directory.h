// For the tests of this folder: a directory that is gone afterwards, stores in it, and digests of texts.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "content/alone_arbiter.h"
#include "content/content_store.h"
#include "content/hasher.h"

namespace turnstile::content {

class TestDirectory {
 public:
  TestDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "turnstile-content-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& below) const { return path_ / below; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A disk of 8 MiB of its own.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
    is_there_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=8m") == 0;
  }
  ~SmallDisk() {
    if (is_there_) ::umount(path_.c_str());
  }
  bool is_there() const { return is_there_; }  // else mounting is not permitted here
  void fill() const {
    const UniqueFd file(::open(filler().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const std::string page(4096, 'x');
    while (::write(file.get(), page.data(), page.size()) > 0) {
    }
  }
  void make_room() const { std::filesystem::remove(filler()); }

 private:
  std::string filler() const { return path_ + "/filler"; }

  const std::string path_;
  bool is_there_ = false;
};

inline Digest digest_of(std::string_view bytes, Algorithm algorithm = Algorithm::sha256) {
  Hasher hasher(algorithm);
  hasher.update(bytes);
  return hasher.digest();
}

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string blob_path(const std::string& root, const Digest& digest) {
  return root + "/blobs/" + std::string(name_of(digest.algorithm())) + "/" + std::string(digest.hex());
}

// This node's second name of a blob.
inline std::string use_path(const std::string& root, const Digest& digest,
                            const std::string& node = "node-a") {
  return root + "/uses/" + node + "/" + std::string(name_of(digest.algorithm())) + "/" +
         std::string(digest.hex());
}

inline void put_file(const std::string& path, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline BlobStore open_blobs(const std::string& root, std::vector<std::string> read_roots = {}) {
  Outcome<BlobStore> store = BlobStore::open({root, std::move(read_roots), "node-a"});
  EXPECT_TRUE(store) << store.error().message;
  return std::move(*store);
}

// Both steps of a removal.
inline Outcome<void> remove_blob(const BlobStore& store, const Digest& digest, bool everywhere) {
  if (const Outcome<BlobStore::Aside> aside = store.put_aside(digest, everywhere); !aside)
    return std::unexpected(aside.error());
  return store.remove_aside(digest, everywhere);
}

// A node: its own state below `directory`, and roots that it may share with others.
inline std::unique_ptr<ContentStore> open_node(const std::string& root, const std::string& state,
                                               std::vector<std::string> read_roots = {},
                                               std::unique_ptr<Arbiter> arbiter = nullptr) {
  Outcome<std::unique_ptr<NodeState>> opened = NodeState::open(state);
  EXPECT_TRUE(opened) << opened.error().message;
  if (!arbiter) arbiter = std::make_unique<AloneArbiter>();
  auto store = std::make_unique<ContentStore>(open_blobs(root, std::move(read_roots)), std::move(*opened),
                                              std::move(arbiter));
  const Outcome<void> started = store->start();
  EXPECT_TRUE(started) << started.error().message;
  return store;
}

}  // namespace turnstile::content
