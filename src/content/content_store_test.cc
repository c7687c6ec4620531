// This node's set of blobs: what is shown, kept over restarts, updated and removed.
#include "content/content_store.h"

#include "content/test_arbiter.h"
#include "content/test_directory.h"
#include "content/write_session.h"

namespace turnstile::content {
namespace {

const Filter kAll = *Filter::parse(std::vector<std::string>());

void pull(ContentStore& node, const std::string& bytes, Labels labels = {}) {
  WriteSession session(node);
  const std::string ref = "default/1/layer-" + digest_of(bytes).text();
  const Outcome<WriteAnswer> there = session.handle({.ref = ref, .expected = {}, .data = {}, .labels = {}});
  ASSERT_TRUE(there) << there.error().message;
  const Outcome<WriteAnswer> done =
      session.handle({.action = WriteAction::commit,
                      .ref = {},
                      .expected = {},
                      .offset = there->offset,
                      .data = std::string_view(bytes).substr(size_t(there->offset)),
                      .labels = std::move(labels)});
  ASSERT_TRUE(done) << done.error().message;
}

TEST(ContentStore, P3_ANodesBlobsAndLabelsSurviveARestart) {
  const TestDirectory directory;
  pull(*open_node(directory / "root", directory / "state"), "abc", {{"k", "v"}});
  const auto again = open_node(directory / "root", directory / "state");
  const Outcome<BlobInfo> info = again->info(digest_of("abc"));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->labels, (Labels{{"k", "v"}}));
  EXPECT_EQ(info->size, 3);
  EXPECT_LT(Timestamp::now().ns - info->created.ns, 60 * Timestamp::kSecond);
}

TEST(ContentStore, ABlobThatIsInNoRootAnyMoreIsForgottenAtTheStart) {
  const TestDirectory directory;
  pull(*open_node(directory / "root", directory / "state"), "abc");
  pull(*open_node(directory / "root", directory / "state"), "def");
  std::filesystem::remove(blob_path(directory / "root", digest_of("abc")));
  std::filesystem::remove(use_path(directory / "root", digest_of("abc")));
  ArbiterScript script;
  const auto again =
      open_node(directory / "root", directory / "state", {}, std::make_unique<ScriptedArbiter>(script));
  EXPECT_FALSE(again->info(digest_of("abc")));
  EXPECT_TRUE(again->info(digest_of("def")));
  EXPECT_EQ(script.heard, (std::vector<std::string>{"end", "succeeded"}));
}

TEST(ContentStore, WhatAReadRootWouldShowIsKeptInMindWhileThatIsNotMounted) {
  const TestDirectory directory;
  const std::string mount = directory / "all",
                    blob = mount + "/blobs/sha256/" + std::string(digest_of("abc").hex());
  put_file(blob, "abc");
  pull(*open_node(directory / "root", directory / "state", {mount}), "abc");
  std::filesystem::rename(mount, directory / "away");
  std::filesystem::create_directory(mount);
  ArbiterScript script;
  const auto node =
      open_node(directory / "root", directory / "state", {mount}, std::make_unique<ScriptedArbiter>(script));
  EXPECT_TRUE(node->info(digest_of("abc")));
  EXPECT_FALSE(node->open(digest_of("abc")));
  std::filesystem::remove(mount);
  std::filesystem::rename(directory / "away", mount);
  EXPECT_TRUE(node->open(digest_of("abc"))) << "seen as soon as it is mounted";
  std::filesystem::rename(mount, directory / "away");
  std::filesystem::create_directory(mount);
  ASSERT_TRUE(node->remove(digest_of("abc")));
  EXPECT_EQ(script.heard.back(), "failed: " + mount + " is empty: is it mounted?")
      << "it is tried again later";
}

TEST(ContentStore, APublishedBlobWithoutALineOfOursIsNotShown) {
  const TestDirectory directory;
  const auto node = open_node(directory / "root", directory / "state");
  put_file(blob_path(directory / "root", digest_of("abc")), "abc");
  EXPECT_EQ(node->info(digest_of("abc")).error().code, ErrorClass::not_found);
  EXPECT_EQ(node->open(digest_of("abc")).error().code, ErrorClass::not_found);
  EXPECT_TRUE(node->list(kAll).empty());
}

TEST(ContentStore, OneStateDirectoryHasOneProcess) {
  const TestDirectory directory;
  const auto node = open_node(directory / "root", directory / "state");
  EXPECT_EQ(NodeState::open(directory / "state").error().code, ErrorClass::unavailable);
}

TEST(ContentStore, P8_DeleteUpdateAndListWork) {
  const TestDirectory directory;
  const auto node = open_node(directory / "root", directory / "state");
  pull(*node, "abc", {{"a", "1"}, {"b", "2"}});
  pull(*node, "def");
  const Digest abc = digest_of("abc");
  EXPECT_EQ(node->list(kAll).size(), 2u);
  EXPECT_EQ(node->list(*Filter::parse(std::vector<std::string>{"labels.a==1"})).size(), 1u);
  EXPECT_EQ(node->list(*Filter::parse(std::vector<std::string>{"digest==" + abc.text()})).size(), 1u);

  EXPECT_EQ(node->update(abc, {{"b", "3"}}, {"labels.b", "labels.a"})->labels, (Labels{{"b", "3"}}));
  EXPECT_EQ(node->update(abc, {{"c", "4"}}, {"labels"})->labels, (Labels{{"c", "4"}}));
  EXPECT_EQ(node->update(abc, {{"d", "5"}}, {})->labels, (Labels{{"d", "5"}}));
  EXPECT_EQ(node->update(abc, {}, {"size"}).error().code, ErrorClass::invalid_argument);
  EXPECT_EQ(node->update(abc, {{"k", std::string(4096, 'x')}}, {}).error().code,
            ErrorClass::invalid_argument);
  EXPECT_EQ(node->update(digest_of("none"), {}, {}).error().code, ErrorClass::not_found);
  EXPECT_EQ(node->info(abc)->labels, (Labels{{"d", "5"}}));

  ASSERT_TRUE(node->open(abc));
  ASSERT_TRUE(node->remove(abc));
  ASSERT_TRUE(node->remove(abc));  // missing is fine
  EXPECT_FALSE(node->info(abc));
  EXPECT_FALSE(node->open(abc));
  EXPECT_FALSE(std::filesystem::exists(blob_path(directory / "root", abc)));
}

TEST(ContentStore, ADeleteDropsOnlyThisNodesUseWhenOthersUseTheBlob) {
  const TestDirectory directory;
  ArbiterScript script;
  const auto node =
      open_node(directory / "root", directory / "state", {}, std::make_unique<ScriptedArbiter>(script));
  pull(*node, "abc");
  script.removal = Removal::Kind::settled;
  ASSERT_TRUE(node->remove(digest_of("abc")));
  EXPECT_FALSE(node->info(digest_of("abc")));
  EXPECT_EQ(file_text(blob_path(directory / "root", digest_of("abc"))), "abc");
  pull(*node, "abc");  // is there: adopted
  EXPECT_EQ(script.heard.at(script.heard.size() - 2), "adopt");
  EXPECT_TRUE(node->info(digest_of("abc")));
}

TEST(ContentStore, NothingIsRemovedByARightThatHasRunOut) {
  const TestDirectory directory;
  ArbiterScript script;
  const auto node =
      open_node(directory / "root", directory / "state", {}, std::make_unique<ScriptedArbiter>(script));
  pull(*node, "abc");
  script.valid = false;
  ASSERT_TRUE(node->remove(digest_of("abc")));
  EXPECT_EQ(script.heard.back(), "failed: the right to remove it has run out");
  EXPECT_EQ(file_text(blob_path(directory / "root", digest_of("abc"))), "abc");
}

TEST(ContentStore, ARemovalThatACrashInterruptedIsEndedAtTheStart) {
  const TestDirectory directory;
  pull(*open_node(directory / "root", directory / "state"), "abc");
  ASSERT_TRUE(
      *(*NodeState::open(directory / "state"))->move(digest_of("abc"), Stage::in_use, Stage::leaving));
  const auto again = open_node(directory / "root", directory / "state");
  EXPECT_FALSE(again->info(digest_of("abc")));
  EXPECT_FALSE(std::filesystem::exists(blob_path(directory / "root", digest_of("abc"))));
}

TEST(ContentStore, ABlobThatWasPublishedButNotYetThisNodesWhenItDiedIsRemovedAtTheStart) {
  const TestDirectory directory;
  const auto path = [&](const char* text) { return blob_path(directory / "root", digest_of(text)); };
  for (const char* text : {"nobody's", "another node's"}) {
    ASSERT_TRUE((*NodeState::open(directory / "state"))->note(digest_of(text)));
    put_file(path(text), text);
    ArbiterScript script;
    if (text == std::string("another node's")) script.removal = Removal::Kind::settled;
    const auto again =
        open_node(directory / "root", directory / "state", {}, std::make_unique<ScriptedArbiter>(script));
    EXPECT_EQ(script.count("end"), 1u);
    EXPECT_FALSE(again->info(digest_of(text)));
  }
  EXPECT_FALSE(std::filesystem::exists(path("nobody's")));
  EXPECT_TRUE(std::filesystem::exists(path("another node's")));
}

TEST(OpenBlobs, KeepsTheLastOnesOpenAndForgetsWhatIsRemoved) {
  const TestDirectory directory;
  const BlobStore store = open_blobs(directory / "root");
  OpenBlobs open(store, 2);
  for (const std::string text : {"a", "b", "c"})
    put_file(blob_path(directory / "root", digest_of(text)), text);
  const auto first = *open.open(digest_of("a"));
  EXPECT_EQ(*open.open(digest_of("a")), first);
  ASSERT_TRUE(open.open(digest_of("b")));
  ASSERT_TRUE(open.open(digest_of("c")));
  EXPECT_NE(*open.open(digest_of("a")), first);  // fell out, but `first` can still be read
  char byte;
  EXPECT_EQ(*read_at(first->fd.get(), 0, {&byte, 1}), 1u);
  std::filesystem::remove(blob_path(directory / "root", digest_of("c")));
  open.forget(digest_of("c"));
  EXPECT_FALSE(open.open(digest_of("c")));
}

// Blobs that stay open for reading, and a clock.
struct Reading {
  const TestDirectory directory;
  const BlobStore store = open_blobs(directory / "a");
  OpenBlobs::Clock::time_point now{};
  OpenBlobs open{store, 2, [this] { return now; }};
  const Digest digest = digest_of("abc");
  const std::string path = blob_path(directory / "a", digest);

  std::string read() {
    now += std::chrono::seconds(1);
    const Outcome<std::shared_ptr<const OpenBlob>> blob = open.open(digest);
    if (!blob) return "none";
    std::string bytes(size_t((*blob)->size), '\0');
    (void)read_at((*blob)->fd.get(), 0, bytes);
    return bytes;
  }
};

TEST(OpenBlobs, AFileThatWasPutAwayIsNotReadAnyMore) {
  Reading reading;
  put_file(reading.path, "wrong");
  ASSERT_EQ(reading.read(), "wrong");
  ASSERT_TRUE(*reading.store.put_damaged_away(reading.digest, *reading.store.find(reading.digest)));
  EXPECT_TRUE(reading.open.find_open(reading.digest)) << "a call costs no look at the disk";
  (void)reading.read();
  EXPECT_EQ(reading.read(), "none");
  put_file(reading.path, "abc");
  EXPECT_EQ(reading.read(), "abc");
}

TEST(OpenBlobs, NorIsOneThatNobodyHasReadForAWhile) {
  Reading reading;
  put_file(reading.path, "wrong");
  ASSERT_EQ(reading.read(), "wrong");
  std::filesystem::remove(reading.path);
  reading.now += std::chrono::hours(1);
  EXPECT_EQ(reading.read(), "none");
}

TEST(OpenBlobs, AFileThatWasReplacedIsOpenedAgain) {
  Reading reading;
  put_file(reading.path, "wrong");
  ASSERT_EQ(reading.read(), "wrong");
  std::filesystem::rename(reading.path, reading.directory / "away");
  put_file(reading.path, "abc");
  EXPECT_EQ(reading.read(), "abc");
}

TEST(OpenBlobs, AFileThatARemovalHidesForAMomentIsReadOn) {
  Reading reading;
  put_file(reading.path, "abc");
  ASSERT_EQ(reading.read(), "abc");
  ASSERT_TRUE(reading.store.put_aside(reading.digest, false));
  EXPECT_EQ(reading.read(), "abc");
  ASSERT_TRUE(reading.store.bring_back(reading.digest, false));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reading.read(), "abc");
}

}  // namespace
}  // namespace turnstile::content
