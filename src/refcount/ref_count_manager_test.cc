// The rules of references, on the memory storage; and what a storage of the user's own gets.
#include <gmock/gmock.h>

#include "refcount/test_support.h"

namespace turnstile::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Manager : public ::testing::Test {
 protected:
  std::shared_ptr<RefCountStorage> storage_ = make_memory_storage();
  RefCountManager manager_{storage_};
  RefCountManager strict_{storage_, {.update_requires_no_ref = true}};
};

TEST_F(Manager, PullAddsItsNodeOnceUpdateChangesNothingDeleteClears) {
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(manager_.update_ref_count(operations::kPull, "r", "a", WorkResult::succeeded()));
  ASSERT_TRUE(manager_.update_ref_count(operations::kPull, "r", "b", WorkResult::succeeded()));
  ASSERT_TRUE(manager_.update_ref_count(operations::kUpdate, "r", "c", WorkResult::succeeded()));
  ASSERT_TRUE(manager_.update_ref_count("compact", "r", "d", WorkResult::succeeded()));
  EXPECT_EQ(manager_.get_ref_count("r")->nodes, (Nodes{"a", "b"}));
  ASSERT_TRUE(manager_.update_ref_count(operations::kDelete, "r", "a", WorkResult::succeeded()));
  EXPECT_EQ(manager_.get_ref_count("r")->count(), 0u);
}

TEST_F(Manager, WhatFailedChangesNothing) {
  ASSERT_TRUE(manager_.update_ref_count(operations::kPull, "r", "a", WorkResult::failed("no route")));
  EXPECT_EQ(manager_.get_ref_count("r")->count(), 0u);
  ASSERT_TRUE(manager_.add_ref("r", "a"));
  ASSERT_TRUE(manager_.update_ref_count(operations::kDelete, "r", "a", WorkResult::failed("in use")));
  EXPECT_EQ(manager_.get_ref_count("r")->count(), 1u);
}

TEST_F(Manager, OnlyAPullIsSkippedAndOnlyWhenReferenced) {
  EXPECT_FALSE(manager_.should_skip_operation(operations::kPull, "r")->yes);
  ASSERT_TRUE(manager_.add_ref("r", "a"));
  EXPECT_TRUE(manager_.should_skip_operation(operations::kPull, "r")->yes);
  EXPECT_FALSE(manager_.should_skip_operation(operations::kUpdate, "r")->yes);
  EXPECT_FALSE(manager_.should_skip_operation(operations::kDelete, "r")->yes);
}

TEST_F(Manager, ReferencesForbidDeletingAndUpdatingWhenSoConfigured) {
  for (const char* operation : {operations::kPull, operations::kUpdate, operations::kDelete})
    EXPECT_TRUE(strict_.can_perform_operation(operation, "r")->yes) << operation;
  ASSERT_TRUE(manager_.add_ref("r", "a"));
  EXPECT_FALSE(manager_.can_perform_operation(operations::kDelete, "r")->yes);
  EXPECT_TRUE(manager_.can_perform_operation(operations::kUpdate, "r")->yes);
  EXPECT_FALSE(strict_.can_perform_operation(operations::kUpdate, "r")->yes);
  EXPECT_TRUE(strict_.can_perform_operation(operations::kPull, "r")->yes);
}

TEST_F(Manager, SaysWhyWithAtMostFiveNames) {
  ASSERT_TRUE(storage_->set("layer", {{"n1"}}));
  EXPECT_EQ(manager_.can_perform_operation(operations::kDelete, "layer")->why,
            "The resource layer is used by node n1, so the operation delete is not allowed.");
  ASSERT_TRUE(storage_->set("layer", {{"n1", "n2", "n3", "n4", "n5"}}));
  EXPECT_EQ(manager_.should_skip_operation(operations::kPull, "layer")->why,
            "The resource layer is used by nodes n1, n2, n3, n4, n5, so it is there and need not be pulled.");
  ASSERT_TRUE(storage_->set("layer", {{"n1", "n2", "n3", "n4", "n5", "n6", "n7"}}));
  const std::string why = manager_.can_perform_operation(operations::kDelete, "layer")->why;
  EXPECT_THAT(why, HasSubstr("n1, n2, n3, n4, n5 and 2 more"));
  EXPECT_THAT(why, Not(HasSubstr("n6")));
  EXPECT_EQ(manager_.should_skip_operation(operations::kPull, "other")->why,
            "No node uses the resource other.");
}

TEST_F(Manager, JoinsOnlyThoseWhoUseIt) {
  EXPECT_FALSE(manager_.add_ref_if_used("r", "b").value());
  EXPECT_EQ(manager_.get_ref_count("r")->count(), 0u);
  ASSERT_TRUE(manager_.add_ref("r", "a"));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(manager_.add_ref_if_used("r", "b").value());
  EXPECT_EQ(manager_.get_ref_count("r")->nodes, (Nodes{"a", "b"}));
}

TEST_F(Manager, EmptyIdsAreInvalid) {
  const auto is_invalid = [](const auto& result) {
    return !result && result.error().code == ErrorCode::invalid;
  };
  EXPECT_TRUE(is_invalid(manager_.add_ref("r", "")));
  EXPECT_TRUE(is_invalid(manager_.add_ref("", "a")));
  EXPECT_TRUE(is_invalid(manager_.release_ref("r", "")));
  EXPECT_TRUE(is_invalid(manager_.release_node_refs("")));
  EXPECT_TRUE(is_invalid(manager_.get_ref_count("")));
  EXPECT_TRUE(is_invalid(manager_.update_ref_count(operations::kPull, "r", "", WorkResult::succeeded())));
  EXPECT_TRUE(is_invalid(manager_.update_ref_count(operations::kPull, "", "a", WorkResult::failed(""))));
}

// As a user would write one: the smallest that compiles.
class OwnStorage : public RefCountStorage {
 public:
  Expected<ReferenceCount> get(const std::string& resource) const override { return counts_.at(resource); }
  Expected<void> set(const std::string& resource, const ReferenceCount& count) override {
    counts_[resource] = count;
    return {};
  }
  Expected<void> erase(const std::string& resource) override {
    counts_.erase(resource);
    return {};
  }
  Expected<void> for_each(
      const std::function<bool(const std::string&, const ReferenceCount&)>& visit) const override {
    for (const auto& [resource, count] : counts_)
      if (!visit(resource, count)) break;
    return {};
  }
  // Calls the change twice, which it may.
  Expected<void> update(const std::string& resource,
                        const std::function<bool(ReferenceCount&)>& change) override {
    ReferenceCount tried = counts_[resource];
    change(tried);
    change(counts_[resource]);
    return {};
  }

 private:
  std::map<std::string, ReferenceCount> counts_;
};

TEST(ManagerOnAStorageOfTheUsersOwn, ReleasesANodeAndCountsEachReferenceOnce) {
  const auto storage = std::make_shared<OwnStorage>();
  RefCountManager manager(storage);
  for (const char* resource : {"a", "b", "c"}) ASSERT_TRUE(storage->set(resource, {{"dead", "alive"}}));
  EXPECT_EQ(manager.release_node_refs("dead").value(), 3u);
  EXPECT_EQ(manager.get_ref_count("b")->nodes, Nodes{"alive"});
}

}  // namespace
}  // namespace turnstile::testing
