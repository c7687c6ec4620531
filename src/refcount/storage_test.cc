// What every storage must do, asked of all three.
#include <gmock/gmock.h>

#include <optional>
#include <thread>

#include "refcount/test_support.h"

namespace turnstile::testing {
namespace {

using ::testing::ElementsAre;

class Storage : public ::testing::TestWithParam<const char*> {
 protected:
  bool keeps() const { return std::string(GetParam()) != "memory"; }
  // As after a restart of the process, where the kind survives one.
  void reopen() {
    if (!keeps()) return;
    manager_.reset();
    storage_.reset();
    storage_ = must_open(GetParam(), path_);
    manager_.emplace(storage_);
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "references";
  std::shared_ptr<RefCountStorage> storage_ = must_open(GetParam(), path_);
  std::optional<RefCountManager> manager_{storage_};
};

class StorageThatKeeps : public Storage {};  // The memory storage is gone with its process, and says so.

std::string name_of(const ::testing::TestParamInfo<const char*>& kind) { return kind.param; }
INSTANTIATE_TEST_SUITE_P(All, Storage, ::testing::Values("memory", "file", "sqlite"), name_of);
INSTANTIATE_TEST_SUITE_P(All, StorageThatKeeps, ::testing::Values("file", "sqlite"), name_of);

TEST_P(Storage, AnUnknownResourceHasNoReferences) {
  EXPECT_EQ(nodes_of(*storage_, "r"), Nodes{});
  EXPECT_THAT(resources_of(*storage_), ElementsAre());
}

TEST_P(Storage, WhatIsSetIsReadBackAlsoAfterReopening) {
  ASSERT_TRUE(storage_->set("r", {{"b", "a"}}));
  EXPECT_EQ(nodes_of(*storage_, "r"), (Nodes{"a", "b"}));
  ASSERT_TRUE(storage_->set("r", {{"b", "c"}}));
  reopen();
  EXPECT_EQ(nodes_of(*storage_, "r"), (Nodes{"b", "c"}));
}

TEST_P(Storage, ErasedAndEmptiedResourcesAreGone) {
  ASSERT_TRUE(storage_->set("erased", {{"a"}}));
  ASSERT_TRUE(storage_->set("emptied", {{"a"}}));
  ASSERT_TRUE(storage_->set("kept", {{"a"}}));
  ASSERT_TRUE(storage_->erase("erased"));
  ASSERT_TRUE(storage_->erase("erased"));
  ASSERT_TRUE(storage_->set("emptied", {}));
  reopen();
  EXPECT_THAT(resources_of(*storage_), ElementsAre("kept"));
}

TEST_P(Storage, UpdateSeesWhatIsThereAndFalseLeavesIt) {
  ASSERT_TRUE(storage_->set("r", {{"a"}}));
  ASSERT_TRUE(storage_->update("r", [](ReferenceCount& count) {
    EXPECT_EQ(count.nodes, Nodes{"a"});
    count.nodes.insert("b");
    return true;
  }));
  ASSERT_TRUE(storage_->update("r", [](ReferenceCount& count) {
    count.nodes.clear();
    return false;
  }));
  reopen();
  EXPECT_EQ(nodes_of(*storage_, "r"), (Nodes{"a", "b"}));
}

TEST_P(Storage, AnExceptionOfTheChangeReachesItsCallerAndChangesNothing) {
  ASSERT_TRUE(storage_->set("r", {{"a"}}));
  EXPECT_THROW((void)storage_->update("r",
                                      [](ReferenceCount& count) -> bool {
                                        count.nodes.clear();
                                        throw std::runtime_error("no");
                                      }),
               std::runtime_error);
  EXPECT_EQ(nodes_of(*storage_, "r"), Nodes{"a"});
  EXPECT_TRUE(storage_->set("r", {{"b"}}));
}

TEST_P(Storage, WalksInTheOrderOfTheIdsAndStopsWhenTold) {
  for (const char* resource : {"b", "a", "c", "\xc3\xa4", "B"})
    ASSERT_TRUE(storage_->set(resource, {{"n", "m"}}));
  EXPECT_THAT(resources_of(*storage_), ElementsAre("B", "a", "b", "c", "\xc3\xa4"));
  std::vector<std::string> seen;
  ASSERT_TRUE(storage_->for_each([&](const std::string& resource, const ReferenceCount& count) {
    EXPECT_EQ(count.nodes, (Nodes{"m", "n"}));
    seen.push_back(resource);
    return resource != "a";
  }));
  EXPECT_THAT(seen, ElementsAre("B", "a"));
}

// A writer moves one node between two resources, in one commit. A walk that saw two moments would now and
// then find it in both, or in neither.
TEST_P(Storage, AWalkSeesOneMoment) {
  ASSERT_TRUE(storage_->set("a", {{"mover"}}));
  ASSERT_TRUE(storage_->set("z", {{"other"}}));
  std::jthread writer([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      EXPECT_TRUE(storage_->update_all({"a", "z"}, [](const std::string&, ReferenceCount& count) {
        if (count.nodes.erase("mover") == 0) count.nodes.insert("mover");
        return true;
      }));
  });
  for (int i = 0; i < 200; ++i) {
    int found = 0;
    ASSERT_TRUE(storage_->for_each([&](const std::string&, const ReferenceCount& count) {
      found += int(count.nodes.contains("mover"));
      return true;
    }));
    ASSERT_EQ(found, 1);
  }
}

TEST_P(Storage, X5_IdsOfAnyBytesStayApart) {
  const std::string with_zero("a\0b", 3);
  const std::vector<std::string> ids = {"a:b",
                                        "a",
                                        "b:c",
                                        "\"quoted\"",
                                        "two\nlines",
                                        "back\\slash",
                                        "a/b",
                                        "%41",
                                        with_zero,
                                        "\xe8\xb5\x84\xe6\xba\x90",
                                        "\x01\x1f\x7f",
                                        "'; DROP TABLE reference; --",
                                        " a ",
                                        "\xf0\x9f\x94\x92",
                                        "A"};
  for (const std::string& id : ids) ASSERT_TRUE(storage_->set(id, {{id, "node of " + id}}));
  reopen();
  EXPECT_EQ(resources_of(*storage_).size(), ids.size());
  for (const std::string& id : ids) EXPECT_EQ(nodes_of(*storage_, id), (Nodes{id, "node of " + id})) << id;
}

TEST_P(Storage, EmptyIdsAreInvalidAndChangeNothing) {
  const auto code_of = [](const auto& result) {
    return result ? ErrorCode::unavailable : result.error().code;
  };
  EXPECT_EQ(code_of(storage_->get("")), ErrorCode::invalid);
  EXPECT_EQ(code_of(storage_->set("", {{"a"}})), ErrorCode::invalid);
  EXPECT_EQ(code_of(storage_->erase("")), ErrorCode::invalid);
  EXPECT_EQ(code_of(storage_->set("r", {{"a", ""}})), ErrorCode::invalid);
  EXPECT_THAT(resources_of(*storage_), ElementsAre());
}

TEST_P(StorageThatKeeps, P3_ReferencesSurviveARestart) {
  {
    ASSERT_TRUE(manager_->update_ref_count("pull", "r", "node-a", WorkResult::succeeded()));
    ASSERT_TRUE(manager_->update_ref_count("pull", "r", "node-b", WorkResult::succeeded()));
  }
  reopen();
  EXPECT_EQ(manager_->get_ref_count("r")->nodes, (Nodes{"node-a", "node-b"}));
  EXPECT_TRUE(manager_->should_skip_operation("pull", "r")->yes);
  EXPECT_FALSE(manager_->can_perform_operation("delete", "r")->yes);
}

TEST_P(Storage, P4_AThousandParallelAddsAreAThousand) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 50; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string node = "node-" + std::to_string(t * 20 + i);
        const auto updated = manager_->update_ref_count("pull", "r", node, WorkResult::succeeded());
        EXPECT_TRUE(updated) << updated.error().message;
      }
    });
  threads.clear();
  EXPECT_EQ(manager_->get_ref_count("r")->count(), 1000u);
  reopen();
  EXPECT_EQ(nodes_of(*storage_, "r").size(), 1000u);
}

TEST_P(Storage, P5_ANodesReferencesAreReleasedAtOnce) {
  std::vector<std::string> resources;
  for (int i = 0; i < 300; ++i) resources.push_back("r" + std::to_string(1000 + i));
  ASSERT_TRUE(storage_->update_all(resources, [](const std::string& resource, ReferenceCount& count) {
    const Nodes nodes[] = {{"dead"}, {"dead", "alive"}, {"alive"}};
    count.nodes = nodes[resource.back() % 3];
    return true;
  }));
  size_t of_dead = 0, only_dead = 0;
  for (const std::string& resource : resources) {
    of_dead += resource.back() % 3 != 2;
    only_dead += resource.back() % 3 == 0;
  }
  EXPECT_EQ(manager_->release_node_refs("dead").value(), of_dead);
  EXPECT_EQ(manager_->release_node_refs("dead").value(), 0u);
  reopen();
  EXPECT_EQ(resources_of(*storage_).size(), 300 - only_dead);
  EXPECT_EQ(nodes_of(*storage_, "r1001"), Nodes{"alive"});
}

TEST_P(Storage, P6_AddAndReleaseArePerNodeAndIdempotent) {
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(manager_->add_ref("r", "a"));
  ASSERT_TRUE(manager_->add_ref("r", "b"));
  EXPECT_EQ(nodes_of(*storage_, "r"), (Nodes{"a", "b"}));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(manager_->release_ref("r", "a"));
  EXPECT_EQ(nodes_of(*storage_, "r"), Nodes{"b"});
  ASSERT_TRUE(manager_->release_ref("r", "never there"));
  ASSERT_TRUE(manager_->release_ref("r", "b"));
  EXPECT_THAT(resources_of(*storage_), ElementsAre());
}

}  // namespace
}  // namespace turnstile::testing
