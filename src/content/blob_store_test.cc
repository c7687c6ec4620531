// Paths and links: nothing outside the store is ever read, written or removed.
#include "content/blob_store.h"

#include <fmt/format.h>

#include "content/key_locks.h"
#include "content/test_directory.h"
#include "content/writer.h"

namespace turnstile::content {
namespace {

namespace fs = std::filesystem;

TEST(BlobStore, LooksInItsOwnRootThenInTheReadRoots) {
  const TestDirectory directory;
  const Digest own = digest_of("own"), other = digest_of("other");
  put_file(blob_path(directory / "b", own), "not read");
  const BlobStore store = open_blobs(directory / "a", {directory / "b"});
  put_file(blob_path(directory / "a", own), "own");
  put_file(blob_path(directory / "b", other), "other");
  EXPECT_EQ(store.find(own)->size, 3);
  EXPECT_EQ(store.find(other)->size, 5);
  EXPECT_EQ(store.find(digest_of("none")).error().code, ErrorClass::not_found);
  ASSERT_TRUE(remove_blob(store, other, false));
  EXPECT_TRUE(fs::exists(blob_path(directory / "b", other)));
  ASSERT_TRUE(remove_blob(store, other, true));
  EXPECT_FALSE(fs::exists(blob_path(directory / "b", other)));
}

TEST(BlobStore, FollowsNoLinkPlantedForABlob) {
  const TestDirectory directory;
  const BlobStore store = open_blobs(directory / "a");
  put_file(directory / "secret", "secret");
  const Digest digest = digest_of("x");
  fs::create_symlink(directory / "secret", blob_path(directory / "a", digest));
  const Outcome<OpenBlob> found = store.find(digest);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorClass::internal);
  ASSERT_TRUE(remove_blob(store, digest, true));
  EXPECT_EQ(file_text(directory / "secret"), "secret");
}

TEST(BlobStore, FollowsNoLinkPlantedForADirectory) {
  const TestDirectory directory;
  const BlobStore store = open_blobs(directory / "a");
  const Digest digest = digest_of("x");
  put_file(directory / std::string("outside/") + std::string(digest.hex()), "x");
  fs::remove(directory / "a/blobs/sha256");
  fs::create_directory_symlink(directory / "outside", directory / "a/blobs/sha256");
  EXPECT_FALSE(store.find(digest));
  EXPECT_FALSE(remove_blob(store, digest, true));
  EXPECT_TRUE(fs::exists(directory / std::string("outside/") + std::string(digest.hex())));
  KeyLocks locks;
  auto writer = Writer::open(store, locks, "r", 0, "");
  ASSERT_TRUE(writer && (*writer)->write(0, "y"));
  EXPECT_FALSE((*writer)->publish(*(*writer)->verify(0, std::nullopt)));
  EXPECT_FALSE(fs::exists(directory / std::string("outside/") + std::string(digest_of("y").hex())));
}

TEST(BlobStore, FollowsNoLinkPlantedInAnIngest) {
  const TestDirectory directory;
  const BlobStore store = open_blobs(directory / "a");
  put_file(directory / "victim", "victim");
  const std::string ingest = directory / ("a/ingest/node-a/" + std::string(digest_of("r").hex()));
  fs::create_directory(ingest);
  put_file(ingest + "/about", "1 0\n\nr");
  fs::create_symlink(directory / "victim", ingest + "/data");
  KeyLocks locks;
  auto writer = Writer::open(store, locks, "r", 0, "");
  ASSERT_TRUE(writer);  // it is begun anew, with a file of its own
  ASSERT_TRUE((*writer)->write(0, "overwritten"));
  EXPECT_EQ(file_text(directory / "victim"), "victim");
  (*writer)->close();
  fs::remove_all(ingest);
  fs::create_directory_symlink(directory.path(), ingest);
  EXPECT_FALSE(Writer::open(store, locks, "r", 0, ""));
  EXPECT_FALSE(store.drop_ingest("r"));
  EXPECT_EQ(file_text(directory / "victim"), "victim");
}

TEST(BlobStore, NamesAnIngestByAHashWhateverTheRefIs) {
  const TestDirectory directory;
  const BlobStore store = open_blobs(directory / "a");
  const std::string refs[] = {"../../../escape",
                              "/etc/passwd",
                              "a/../b",
                              std::string("nul\0nul", 7),
                              "line\nline\n",
                              std::string(4000, 'x'),
                              ".",
                              "..",
                              "~"};
  for (const std::string& ref : refs) ASSERT_TRUE(store.open_ingest(ref, 5, "")) << ref;
  for (const auto& entry : fs::directory_iterator(directory / "a/ingest/node-a"))
    EXPECT_EQ(entry.path().filename().string().size(), 64u);
  for (const std::string& ref : refs) {
    const Outcome<IngestStatus> status = store.ingest_status(ref);
    ASSERT_TRUE(status);
    EXPECT_EQ(status->ref, ref);
    EXPECT_EQ(status->total, 5);
  }
  EXPECT_EQ(store.ingests()->size(), std::size(refs));
  size_t here = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory.path())) ++here;
  EXPECT_EQ(here, 1u);  // only the root
  EXPECT_EQ(store.open_ingest(std::string(1 << 20, 'x'), 0, "").error().code, ErrorClass::invalid_argument);
}

TEST(BlobStore, AcceptsOnlyPlainNodeNames) {
  const TestDirectory directory;
  for (const std::string bad : {"", "..", ".hidden", "a/b", "../x", "a b"})
    EXPECT_FALSE(BlobStore::open({directory / "r", {}, bad})) << bad;
}

TEST(BlobStore, CleansWhatACrashLeftOfIngestsAndKeepsTheOthers) {
  const TestDirectory directory;
  const BlobStore store = open_blobs(directory / "a");
  ASSERT_TRUE(store.open_ingest("good", 0, ""));
  put_file(directory / "a/ingest/node-a/0123/data", "no about");
  put_file(directory / "a/ingest/node-a/4567/about", "torn");
  EXPECT_EQ(*store.clean_ingests(), 2u);
  EXPECT_EQ(store.ingests()->size(), 1u);
}

TEST(BlobStore, SecondNamesOfAnotherMachineAreNotTakenOver) {
  const TestDirectory directory;
  const BlobStore store = open_blobs(directory / "a"), again = open_blobs(directory / "a");
  ASSERT_TRUE(store.take_possession("11", "the machine one"));
  EXPECT_TRUE(again.take_possession("11", "the machine one")) << "after a restart";
  const Outcome<void> other = again.take_possession("112", "the machine two");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorClass::failed_precondition);
  for (const std::string part : {"uses/node-a belongs to the machine one:", "remove ", "uses/node-a/owner",
                                 "turnstile refs --release-node node-a"})
    EXPECT_NE(other.error().message.find(part), std::string::npos) << other.error().message;
  EXPECT_TRUE(again.take_possession("11", "the machine three")) << "its disk was moved there";
  std::filesystem::remove(directory / "a/uses/node-a/owner");
  EXPECT_TRUE(again.take_possession("112", "the machine two"));
}

TEST(BlobStore, AFullDiskIsNoOtherOwner) {
  const TestDirectory directory;
  const SmallDisk disk(directory / "disk");
  if (!disk.is_there()) GTEST_SKIP() << "mounting is not permitted here";
  const BlobStore store = open_blobs(directory / "disk");
  disk.fill();
  const Outcome<void> taken = store.take_possession("11", "the machine one");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorClass::resource_exhausted);
  EXPECT_NE(taken.error().message.find("owner"), std::string::npos) << taken.error().message;
  const Outcome<void> said = store.set_confirmed_by("7");
  ASSERT_FALSE(said);
  EXPECT_NE(said.error().message.find("confirmed-by"), std::string::npos) << said.error().message;
  disk.make_room();
  EXPECT_TRUE(store.take_possession("11", "the machine one"));
  disk.fill();
  EXPECT_TRUE(store.take_possession("11", "the machine one")) << "nothing is to be written";
  EXPECT_EQ(store.take_possession("11", "another place").error().code, ErrorClass::resource_exhausted);
  EXPECT_EQ(store.take_possession("112", "the machine two").error().code, ErrorClass::failed_precondition);
}

TEST(BlobStore, ADiskThatIsNotMountedIsNotTakenForAnEmptyOne) {
  const TestDirectory directory;
  const auto open = [&](bool used) { return BlobStore::open({directory / "root", {}, "node-a", used}); };
  std::filesystem::create_directory(directory / "root");
  EXPECT_EQ(open(true).error().code, ErrorClass::failed_precondition);
  EXPECT_TRUE(std::filesystem::is_empty(directory / "root")) << "nothing is made where the disk should be";
  EXPECT_TRUE(open(false));
  EXPECT_TRUE(open(true));
}

}  // namespace
}  // namespace turnstile::content
