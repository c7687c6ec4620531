// The model by hand, a rule at a time: what the random histories compare the engine with must itself be
// right.
#include <gtest/gtest.h>

#include "model.h"

namespace turnstile::model {
namespace {

using namespace std::chrono_literals;

// A few words to write rules with. Time starts at 0 and is moved by the test.
class ModelRules : public testing::Test {
 protected:
  template <class Call>
  auto fresh(Call call) {
    step_ = {};
    return call();
  }
  LockCommand ask(const char* operation, const char* node, const char* request = "") {
    return {.lane = {OperationName(operation), ResourceId("r")}, .who = {NodeId(node), RequestId(request)}};
  }
  PlainLock lock(const LockCommand& command) {
    return fresh([&] { return model_.lock(command, now_, step_); });
  }
  PlainLock lock(const char* operation, const char* node, const char* request = "") {
    return lock(ask(operation, node, request));
  }
  PlainUnlock unlock(const char* operation, const char* node, bool success, const char* error = "",
                     bool permanent = false, uint64_t token = 0) {
    return fresh([&] {
      return model_.unlock({{OperationName(operation), ResourceId("r")},
                            {NodeId(node), {}},
                            Token(token),
                            success,
                            error,
                            permanent},
                           now_, step_);
    });
  }
  PlainStatus status(const char* operation, const char* node = "") {
    return model_.status({{OperationName(operation), ResourceId("r")}, {NodeId(node), {}}}, now_);
  }
  void pass(Duration time) {
    now_ += time;
    step_ = model_.expire(now_)["r"];
  }
  EngineSettings settings_;
  Model model_{settings_};
  Time now_{};
  Step step_;
};

TEST_F(ModelRules, S2_AskingAgainGivesTheSameTokenAndNoSecondPlace) {
  const PlainLock first = lock("pull", "a");
  EXPECT_EQ(first.state, LockState::acquired);
  EXPECT_EQ(lock("pull", "a").token, first.token);
  EXPECT_EQ(lock("pull", "a", "other").position, 1u);
  EXPECT_EQ(lock("pull", "b").position, 2u);
  EXPECT_EQ(lock("pull", "a", "other").position, 1u);
  EXPECT_EQ(status("pull").queue_length, 2u);
}

TEST_F(ModelRules, S3_ARequestIsRefusedAsBusyWhenOnlyOneNodeMayDownload) {
  settings_.allow_multi_node_download = false;
  model_ = Model(settings_);
  lock("pull", "a");
  const PlainLock second = lock("pull", "b");
  EXPECT_EQ(second.refusal, Refusal::busy);
  EXPECT_EQ(second.holders.at(0).who.node, "a");
  EXPECT_EQ(status("pull").queue_length, 0u);
}

TEST_F(ModelRules, S4_S10_SuccessOfAPullSkipsWaitersAndLateComersWhileItIsKept) {
  lock("pull", "a");
  lock("pull", "b");
  EXPECT_EQ(unlock("pull", "a", true).waiters, std::vector<std::string>{"b"});
  EXPECT_EQ(step_.events.size(), 1u);
  EXPECT_EQ(lock("pull", "c").state, LockState::skipped);
  EXPECT_EQ(status("pull").state, LaneState::completed);
  EXPECT_EQ(status("pull").references, (std::vector<std::string>{"a", "c"}));  // b has not asked yet (S17)
  EXPECT_EQ(lock("pull", "b").state, LockState::skipped);
  EXPECT_EQ(status("pull").references, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(ModelRules, S5_S19_ADeleteOfAReferencedResourceIsRefusedOrOnlyDereferences) {
  model_.add_reference({ResourceId("r"), NodeId("a")});
  model_.add_reference({ResourceId("r"), NodeId("b")});
  EXPECT_EQ(lock("delete", "a").refusal, Refusal::referenced);
  LockCommand dereference = ask("delete", "a");
  dereference.dereference = true;
  const PlainLock skipped = lock(dereference);
  EXPECT_EQ(skipped.state, LockState::skipped);
  EXPECT_EQ(skipped.references, std::vector<std::string>{"b"});
  dereference.who.node = NodeId("b");
  EXPECT_EQ(lock(dereference).state, LockState::acquired);
  EXPECT_EQ(model_.add_reference({ResourceId("r"), NodeId("c")}).refusal, Refusal::busy);
}

TEST_F(ModelRules, S7_ScopeResourceExcludesOtherOperationsInBothOrders) {
  lock("pull", "a");
  EXPECT_EQ(lock("update", "b").state, LockState::acquired);
  LockCommand whole = ask("delete", "c");
  whole.scope = Scope::resource;
  EXPECT_EQ(lock(whole).state, LockState::queued);
  EXPECT_EQ(lock("custom", "d").state, LockState::queued);  // behind an older conflicting waiter
  unlock("pull", "a", false);
  EXPECT_TRUE(step_.events.size() == 1);
  unlock("update", "b", true);
  ASSERT_EQ(step_.events.size(), 2u);
  EXPECT_EQ(step_.events[1].who.node, "c");
}

TEST_F(ModelRules, S8_S15_OnlyTheHolderUnlocksAndARepeatedUnlockIsToldSo) {
  EXPECT_EQ(unlock("pull", "a", true).refusal, Refusal::not_held);
  const uint64_t token = lock("pull", "a").token;
  EXPECT_EQ(unlock("pull", "b", true).refusal, Refusal::not_holder);
  EXPECT_EQ(unlock("pull", "a", true, "", false, token + 5).refusal, Refusal::stale_token);
  EXPECT_EQ(unlock("pull", "a", false, "", false, token).refusal, Refusal::none);
  EXPECT_TRUE(unlock("pull", "a", false, "", false, token).already);
  EXPECT_EQ(unlock("pull", "b", false, "", false, token).refusal, Refusal::not_held);
  pass(settings_.retain_released);
  EXPECT_EQ(unlock("pull", "a", false, "", false, token).refusal, Refusal::not_held);
}

TEST_F(ModelRules, S11_HandoffGrantsTheNextWaiterAfterSuccess) {
  lock("update", "a");
  lock("update", "b");
  EXPECT_EQ(unlock("update", "a", true).next, "b");
  EXPECT_EQ(status("update").holder->who.node, "b");
}

TEST_F(ModelRules, S12_FailureTellsTheNextItsAttemptAndWhy) {
  lock("pull", "a");
  lock("pull", "b");
  unlock("pull", "a", false, "disk full");
  const PlainLock next = lock("pull", "b");
  EXPECT_EQ(next.attempt, 2u);
  EXPECT_EQ(next.previous_error, "disk full");
  unlock("pull", "b", false, "again");
  EXPECT_EQ(lock("pull", "c").attempt, 1u);  // the lane had emptied
}

TEST_F(ModelRules, S12_APermanentFailureEndsAllWaitersAndIsKept) {
  lock("pull", "a");
  LockCommand poll = ask("pull", "b");
  poll.poll = PollId(7);
  lock(poll);
  unlock("pull", "a", false, "404", true);
  ASSERT_EQ(step_.wakes.size(), 1u);
  EXPECT_EQ(step_.wakes[0].answer.state, LockState::failed);
  EXPECT_EQ(step_.wakes[0].answer.error, "404");
  EXPECT_EQ(lock("pull", "c").state, LockState::failed);
  pass(settings_.retain_permanent_failure);
  EXPECT_EQ(lock("pull", "c").state, LockState::acquired);
}

TEST_F(ModelRules, S13_ADeleteVoidsWhatAPullHasCompleted) {
  lock("pull", "a");
  lock("pull", "b");
  unlock("pull", "a", true);
  model_.release_reference({ResourceId("r"), NodeId("a")});
  lock("delete", "c");
  unlock("delete", "c", true);
  EXPECT_EQ(lock("pull", "b").state, LockState::acquired);
}

TEST_F(ModelRules, S14_AnUnclaimedGrantPassesOn) {
  lock("update", "a");
  lock("update", "b");
  lock("update", "c");
  unlock("update", "a", true);
  pass(settings_.claim_timeout);
  ASSERT_EQ(step_.events.size(), 2u);
  EXPECT_EQ(step_.events[0].reason, "unclaimed");
  EXPECT_EQ(step_.events[1].who.node, "c");
  EXPECT_TRUE(status("update", "c").acquired);
  pass(settings_.claim_timeout);
  EXPECT_TRUE(step_.events.empty());
}

TEST_F(ModelRules, S21_ABrokenBondEndsAMonitoredHoldAndAWaiterAfterTheGrace) {
  LockCommand held = ask("update", "a"), waits = ask("update", "b");
  held.monitor = waits.monitor = true;
  held.bond = BondId(1);
  waits.bond = BondId(2);
  EXPECT_TRUE(lock(held).bonded);
  EXPECT_TRUE(lock(waits).bonded);
  model_.close_bond(waits.lane, waits.who, BondId(2), now_);
  pass(1s);
  model_.close_bond(held.lane, held.who, BondId(1), now_);
  pass(settings_.bond_grace - 1s);
  ASSERT_EQ(step_.events.size(), 1u);
  EXPECT_EQ(step_.events[0].kind, EventKind::cancelled);
  pass(1s);
  ASSERT_EQ(step_.events.size(), 1u);
  EXPECT_EQ(step_.events[0].reason, "bond");
}

TEST_F(ModelRules, S22_S23_LeaseStallAndMaxHoldEndAHold) {
  settings_.stall_timeout = 5s;
  model_ = Model(settings_);
  LockCommand leased = ask("update", "a");
  leased.lease = 8s;
  lock(leased);
  lock("custom", "b");
  model_.renew({leased.lane, leased.who, Token::none, {}, Progress{1, 2}}, now_);
  pass(5s);
  ASSERT_EQ(step_.events.size(), 1u);
  EXPECT_EQ(step_.events[0].reason, "stall");
  lock(leased);
  pass(8s);
  EXPECT_EQ(step_.events.at(0).reason, "lease");
  pass(settings_.max_hold);
  EXPECT_EQ(step_.events.at(0).reason, "max_hold");
}

TEST_F(ModelRules, S24_APollThatTimesOutKeepsItsPlaceAndOneThatBreaksLosesIt) {
  lock("update", "a");
  LockCommand poll = ask("update", "b");
  poll.poll = PollId(7);
  lock(poll);
  EXPECT_EQ(model_.end_poll(poll.lane, poll.who, PollId(7), now_)->position, 1u);
  pass(settings_.bond_grace);
  EXPECT_EQ(status("update").queue_length, 1u);
  poll.poll = PollId(8);
  lock(poll);
  model_.break_poll(poll.lane, poll.who, PollId(8), now_);
  pass(settings_.bond_grace);
  EXPECT_EQ(status("update").queue_length, 0u);
}

TEST_F(ModelRules, S25_S26_CancelLeavesAClaimedHoldAloneAndBreakDoesNot) {
  const LaneName lane{OperationName("update"), ResourceId("r")};
  lock("update", "a");
  lock("update", "b");
  EXPECT_FALSE(model_.cancel({lane, {NodeId("a"), {}}}, now_, step_));
  EXPECT_EQ(model_.break_hold({lane, "stuck"}, now_, step_).node, "a");
  EXPECT_EQ(step_.events.back().who.node, "b");
  EXPECT_TRUE(model_.cancel({lane, {NodeId("b"), {}}}, now_, step_));
  EXPECT_EQ(step_.events.back().reason, "cancelled");
  EXPECT_EQ(model_.break_hold({lane, "stuck"}, now_, step_).refusal, Refusal::not_held);
}

TEST_F(ModelRules, S31_ARestartKeepsHoldsAndQueuesAndGivesLeasesTheirFullTime) {
  LockCommand leased = ask("update", "a");
  leased.lease = 8s;
  const uint64_t token = lock(leased).token;
  lock("update", "b");
  pass(7s);
  model_.restart(now_);
  pass(7s);
  EXPECT_EQ(status("update").holder->token, token);
  EXPECT_EQ(status("update").queue.at(0).who.node, "b");
  pass(1s);
  EXPECT_EQ(step_.events.at(0).reason, "lease");
}

}  // namespace
}  // namespace turnstile::model
