// References as files that several nodes share: what a manager on top of them sees, and what a crash leaves.
#include "content/shared_references.h"

#include <thread>

#include "content/node_references.h"
#include "content/test_directory.h"
#include "refcount/test_syncs.h"

namespace turnstile::content {
namespace {

using Nodes = std::set<std::string>;

std::shared_ptr<SharedReferences> open_references(const std::string& directory) {
  Outcome<std::unique_ptr<SharedReferences>> opened = SharedReferences::open(directory, true);
  EXPECT_TRUE(opened) << opened.error().message;
  return std::move(*opened);
}

const std::string kResource = digest_of("a blob").text();
const std::string kOther = digest_of("a blob", Algorithm::sha512).text();

TEST(SharedReferences, WhatOneProcessWritesAnotherSeesAtOnce) {
  const TestDirectory directory;
  RefCountManager a(open_references(directory / "refs")), b(open_references(directory / "refs"));
  ASSERT_TRUE(a.add_ref(kResource, "a.example.com"));
  ASSERT_TRUE(b.add_ref(kResource, "b"));
  ASSERT_TRUE(b.add_ref(kResource, "b"));
  EXPECT_EQ(a.get_ref_count(kResource)->nodes, (Nodes{"a.example.com", "b"}));
  EXPECT_FALSE(a.can_perform_operation("delete", kResource)->yes);
  ASSERT_TRUE(a.release_ref(kResource, "a.example.com"));
  ASSERT_TRUE(a.release_ref(kResource, "a.example.com"));
  EXPECT_EQ(b.get_ref_count(kResource)->nodes, Nodes{"b"});
  ASSERT_TRUE(b.update_ref_count("delete", kResource, "b", WorkResult::succeeded()));
  EXPECT_TRUE(a.can_perform_operation("delete", kResource)->yes);
}

TEST(SharedReferences, OneThatCouldNotBeSyncedDoesNotCount) {
  const TestDirectory directory;
  NodeReferences a(open_references(directory / "refs"), "a");
  {
    const testing::FailingSync failing(1, "/refs/sha256");
    EXPECT_FALSE(a.add(digest_of("a blob")));
  }
  EXPECT_FALSE(*a.has(digest_of("a blob"))) << "a second sync would say that all is well";
  EXPECT_TRUE(a.add(digest_of("a blob")));
  EXPECT_TRUE(*a.has(digest_of("a blob")));
}

TEST(SharedReferences, AWalkSeesAllKindsOfDigestsAndNothingElse) {
  const TestDirectory directory;
  const auto references = open_references(directory / "refs");
  ASSERT_TRUE(references->set(kResource, {{"a", "b"}}));
  ASSERT_TRUE(references->set(kOther, {{"a"}}));
  put_file(directory / "refs/sha256/00/README", "not a reference");
  put_file(directory / "refs/sha256/00/short.a", "");
  std::map<std::string, Nodes> seen;
  ASSERT_TRUE(references->for_each([&](const std::string& resource, const ReferenceCount& count) {
    seen[resource] = count.nodes;
    return true;
  }));
  EXPECT_EQ(seen, (std::map<std::string, Nodes>{{kResource, {"a", "b"}}, {kOther, {"a"}}}));
  EXPECT_EQ(*NodeReferences(references, "b").own(), std::vector<Digest>{digest_of("a blob")});
}

TEST(SharedReferences, AllOfADeadNodesReferencesCanBeReleased) {
  const TestDirectory directory;
  RefCountManager references(open_references(directory / "refs"));
  ASSERT_TRUE(references.add_ref(kResource, "dead"));
  ASSERT_TRUE(references.add_ref(kResource, "alive"));
  ASSERT_TRUE(references.add_ref(kOther, "dead"));
  EXPECT_EQ(*references.release_node_refs("dead"), 2u);
  EXPECT_EQ(references.get_ref_count(kResource)->nodes, Nodes{"alive"});
  EXPECT_EQ(references.get_ref_count(kOther)->count(), 0u);
}

TEST(SharedReferences, NodesThatComeAndGoTogetherLoseNothing) {
  const TestDirectory directory;
  {
    std::vector<std::jthread> nodes;
    for (const std::string node : {"a", "b", "c"})
      nodes.emplace_back([&directory, node] {
        RefCountManager references(open_references(directory / "refs"));
        for (int i = 0; i < 50; ++i) {
          EXPECT_TRUE(references.add_ref(kResource, node));
          if (i == 49) break;
          EXPECT_TRUE(references.release_ref(kResource, node));
        }
      });
  }
  EXPECT_EQ(open_references(directory / "refs")->get(kResource)->nodes, (Nodes{"a", "b", "c"}));
}

TEST(SharedReferences, ADirectoryThatIsNotThereIsNeverTakenForNoReferences) {
  const TestDirectory directory;
  EXPECT_FALSE(SharedReferences::open(directory / "missing", false));
  const auto references = open_references(directory / "refs");
  ASSERT_TRUE(references->set(kResource, {{"a"}}));
  std::filesystem::remove_all(directory / "refs");
  const Expected<ReferenceCount> count = references->get(kResource);
  ASSERT_FALSE(count);
  EXPECT_EQ(count.error().code, ErrorCode::storage);
}

TEST(SharedReferences, OnlyDigestsAndPlainNamesBecomeFiles) {
  const TestDirectory directory;
  const auto references = open_references(directory / "refs");
  EXPECT_FALSE(references->set("../x", {{"a"}}));
  EXPECT_FALSE(references->set(kResource, {{"../a"}}));
  EXPECT_EQ(references->get(kResource)->count(), 0u);
}

}  // namespace
}  // namespace turnstile::content
