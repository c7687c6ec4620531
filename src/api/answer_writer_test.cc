#include "api/answer_writer.h"

#include "api/test_body.h"

namespace turnstile {
namespace {

const LaneName kLane{OperationName("pull"), ResourceId("r")};

HolderView holder(std::string_view operation = "pull") {
  HolderView view;
  view.operation = OperationName(operation);
  view.who = {NodeId("h"), RequestId("q")};
  view.token = Token(7);
  view.since = Time(Duration(1'000'000));
  return view;
}

std::string lock_json(const LockAnswer& answer, unsigned status, AnswerForm form = AnswerForm::alone) {
  std::string out;
  EXPECT_EQ(append_lock_answer(out, answer, kLane, form), status);
  return out;
}

TEST(LockAnswerJson, AcquiredTellsTokenAndAttempt) {
  LockAnswer answer;
  answer.state = LockState::acquired;
  answer.token = Token(9007199254740991);
  answer.attempt = 1;
  EXPECT_EQ(
      lock_json(answer, 200),
      R"({"acquired":true,"skip":false,"state":"acquired","message":"the lock is yours: unlock it when done",)"
      R"("token":9007199254740991,"attempt":1})");
  answer.attempt = 2;
  answer.previous_error = "disk \"full\"";
  const Parsed parsed(lock_json(answer, 200));
  EXPECT_EQ(parsed.number("/attempt"), 2u);
  EXPECT_EQ(parsed.text("/previous_error"), "disk \"full\"");
}

TEST(LockAnswerJson, QueuedTellsPositionAndHolder) {
  LockAnswer answer;
  answer.state = LockState::queued;
  answer.position = 3;
  answer.holder = holder();
  const Parsed parsed(lock_json(answer, 200));
  EXPECT_FALSE(parsed.truth("/acquired"));
  EXPECT_FALSE(parsed.truth("/skip"));
  EXPECT_EQ(parsed.text("/state"), "queued");
  EXPECT_FALSE(parsed.text("/message").empty());
  EXPECT_EQ(parsed.number("/position"), 3u);
  EXPECT_EQ(parsed.text("/holder/node_id"), "h");
  EXPECT_EQ(parsed.text("/holder/request_id"), "q");
  EXPECT_EQ(parsed.number("/holder/token"), 7u);
  EXPECT_EQ(parsed.text("/holder/since"), "1970-01-01T00:00:01.000000Z");
  for (const char* absent : {"/holder/type", "/holder/lease_ms", "/holder/done", "/holder/info", "/token",
                             "/attempt", "/references", "/error", "/code"})
    EXPECT_FALSE(parsed.has(absent)) << absent;

  answer.holder = holder("delete");
  EXPECT_EQ(Parsed(lock_json(answer, 200)).text("/holder/type"), "delete") << "another lane is in the way";
  answer.holder.reset();
  EXPECT_FALSE(Parsed(lock_json(answer, 200)).has("/holder"));
}

TEST(LockAnswerJson, SkippedTellsWhoElseUsesTheResource) {
  LockAnswer answer;
  answer.state = LockState::skipped;
  const Parsed done(lock_json(answer, 200));
  EXPECT_TRUE(done.truth("/skip"));
  EXPECT_FALSE(done.truth("/acquired"));
  EXPECT_EQ(done.text("/state"), "skipped");
  EXPECT_FALSE(done.has("/references"));
  constexpr std::string_view kNodes[] = {"a", "b"};
  answer.references = {5000, kNodes};
  const Parsed dropped(lock_json(answer, 200));
  EXPECT_EQ(dropped.number("/references/count"), 5000u) << "of all, not of those that are named";
  EXPECT_EQ(dropped.text("/references/nodes/1"), "b");
  EXPECT_NE(dropped.text("/message"), done.text("/message"));
}

TEST(LockAnswerJson, S39_SkippedTellsWhoDidTheWorkAndWhatItLeft) {
  LockAnswer answer;
  answer.state = LockState::skipped;
  answer.done = DoneView{NodeId("n1"), std::chrono::minutes(3), "v1\n"};
  const Parsed done(lock_json(answer, 200));
  EXPECT_EQ(done.text("/completed_by"), "n1");
  EXPECT_EQ(done.number("/completed_ms_ago"), 180'000u);
  EXPECT_EQ(done.text("/result"), "v1\n");
  answer.done->result = {};
  EXPECT_FALSE(Parsed(lock_json(answer, 200)).has("/result"));
  answer.done.reset();
  const Parsed nobody(lock_json(answer, 200));
  EXPECT_FALSE(nobody.has("/completed_by"));
  EXPECT_FALSE(nobody.has("/completed_ms_ago"));
}

TEST(LockAnswerJson, CancelledIsNoError) {
  LockAnswer answer;
  answer.state = LockState::cancelled;
  const Parsed parsed(lock_json(answer, 200));
  EXPECT_EQ(parsed.text("/state"), "cancelled");
  EXPECT_FALSE(parsed.has("/error"));
}

TEST(LockAnswerJson, ARefusalTellsItsCodeAndStillReadsAsALockAnswer) {
  const struct {
    Refusal refusal;
    unsigned status;
    const char* code;
  } cases[] = {{Refusal::busy, 403, "busy"},
               {Refusal::referenced, 403, "referenced"},
               {Refusal::queue_full, 429, "queue_full"},
               {Refusal::too_many_operations, 429, "too_many_requests"},
               {Refusal::too_many_resources, 429, "too_many_requests"},
               {Refusal::too_many_references, 429, "too_many_requests"},
               {Refusal::too_many_waiters, 429, "too_many_requests"}};
  for (const auto& [refusal, status, code] : cases) {
    LockAnswer answer;
    answer.refusal = refusal;
    if (refusal == Refusal::busy) answer.holder = holder();
    constexpr std::string_view kNodes[] = {"n2"};
    if (refusal == Refusal::referenced) answer.references = {1, kNodes};
    const Parsed parsed(lock_json(answer, status));
    EXPECT_FALSE(parsed.truth("/acquired"));
    EXPECT_FALSE(parsed.truth("/skip"));
    EXPECT_EQ(parsed.text("/state"), "refused");
    EXPECT_EQ(parsed.text("/code"), code);
    EXPECT_EQ(parsed.text("/message"), parsed.text("/error"));
    EXPECT_EQ(parsed.has("/holder"), refusal == Refusal::busy);
    EXPECT_EQ(parsed.has("/references"), refusal == Refusal::referenced);
  }
}

TEST(LockAnswerJson, AKeptFailureIsToldInItsOwnWords) {
  LockAnswer answer;
  answer.state = LockState::failed;
  answer.refusal = Refusal::failed;
  answer.error = "404 from the registry";
  const Parsed parsed(lock_json(answer, 403));
  EXPECT_EQ(parsed.text("/state"), "failed");
  EXPECT_EQ(parsed.text("/code"), "failed");
  EXPECT_EQ(parsed.text("/error"), "404 from the registry");
  answer.error = {};
  EXPECT_NE(Parsed(lock_json(answer, 403)).text("/error"), "")
      << "a failure without a text still says something";
}

TEST(UnlockAnswerJson, ReleasedTellsNextAndWaiters) {
  std::string out;
  UnlockAnswer answer;
  EXPECT_EQ(append_unlock_answer(out, answer), 200u);
  EXPECT_EQ(out, R"({"released":true,"message":"the lock is released","waiters":[]})");
  out.clear();
  answer.next = NodeId("n2");
  constexpr std::string_view kWaiters[] = {"n2", "n3"};
  answer.waiters = {2, kWaiters};
  answer.already = true;
  append_unlock_answer(out, answer);
  const Parsed parsed(out);
  EXPECT_EQ(parsed.text("/next"), "n2");
  EXPECT_EQ(parsed.text("/waiters/1"), "n3");
  EXPECT_FALSE(parsed.has("/waiters_count")) << "all are named";
  EXPECT_TRUE(parsed.truth("/already"));
  answer.waiters.count = 5000;
  out.clear();
  append_unlock_answer(out, answer);
  EXPECT_EQ(Parsed(out).number("/waiters_count"), 5000u);
}

TEST(UnlockAnswerJson, S38_WhoAskedForATimeIsToldHowLongItIs) {
  UnlockAnswer answer;
  answer.keep = std::chrono::hours(1);
  std::string out;
  append_unlock_answer(out, answer);
  EXPECT_EQ(out, R"({"released":true,"message":"the lock is released","waiters":[],"keep_ms":3600000})");
}

TEST(UnlockAnswerJson, S39_AResultThatIsNotKeptIsTold) {
  UnlockAnswer answer;
  answer.result_dropped = true;
  std::string out;
  append_unlock_answer(out, answer);
  EXPECT_EQ(out, R"({"released":true,"message":"the lock is released","waiters":[],"result_kept":false})");
}

TEST(ForgetAnswerJson, S40_TellsWhetherAnythingWasKept) {
  std::string forgotten, nothing;
  EXPECT_EQ(append_forget_answer(forgotten, {true}), 200u);
  append_forget_answer(nothing, {});
  EXPECT_EQ(forgotten + nothing, R"({"forgotten":true}{"forgotten":false})");
}

TEST(UnlockAnswerJson, EveryRefusalHasCodeMessageAndError) {
  for (const Refusal refusal : {Refusal::not_held, Refusal::not_holder, Refusal::stale_token}) {
    UnlockAnswer unlock;
    RenewAnswer renew;
    unlock.refusal = renew.refusal = refusal;
    std::string released, renewed;
    EXPECT_EQ(append_unlock_answer(released, unlock), 403u);
    EXPECT_EQ(append_renew_answer(renewed, renew), 403u);
    const Parsed parsed(released);
    EXPECT_FALSE(parsed.truth("/released"));
    EXPECT_EQ(parsed.text("/code"), error_row(error_of(refusal)).code);
    EXPECT_EQ(parsed.text("/message"), parsed.text("/error"));
    EXPECT_FALSE(Parsed(renewed).truth("/renewed"));
  }
}

TEST(OtherAnswersJson, RenewCancelAndBreak) {
  std::string out;
  EXPECT_EQ(append_renew_answer(out, {Refusal::none, std::chrono::seconds(30)}), 200u);
  EXPECT_EQ(out, R"({"renewed":true,"lease_ms":30000})");
  out.clear();
  EXPECT_EQ(append_cancel_answer(out, {true}), 200u);
  EXPECT_EQ(out, R"({"cancelled":true})");
  out.clear();
  EXPECT_EQ(append_cancel_answer(out, {false}), 200u);
  EXPECT_EQ(out, R"({"cancelled":false})");
  out.clear();
  EXPECT_EQ(append_break_answer(out, {Refusal::none, NodeId("n")}), 200u);
  EXPECT_EQ(out, R"({"broken":true,"node_id":"n"})");
  out.clear();
  EXPECT_EQ(append_break_answer(out, {Refusal::not_held, NodeId()}), 403u);
  EXPECT_FALSE(Parsed(out).truth("/broken"));
  EXPECT_EQ(Parsed(out).text("/code"), "not_held");
}

TEST(ReferencesJson, TheNodesAndWhetherAnythingChanged) {
  ReferencesAnswer answer;
  answer.changed = true;
  answer.count = 2;
  constexpr std::string_view kNodes[] = {"a", "b"};
  answer.nodes = kNodes;
  std::string out;
  EXPECT_EQ(append_references_answer(out, answer, ResourceId("r")), 200u);
  EXPECT_EQ(out, R"({"resource_id":"r","count":2,"nodes":["a","b"]})");
  out = "before ";
  EXPECT_EQ(append_reference_change(out, answer, ResourceId("r")), 200u);
  EXPECT_EQ(out, R"(before {"resource_id":"r","count":2,"nodes":["a","b"],"changed":true})");
  out.clear();
  EXPECT_EQ(append_release_node_answer(out, answer, NodeId("n")), 200u);
  EXPECT_EQ(out, R"({"node_id":"n","changed":true,"count":2})");
  out.clear();
  answer.count = 5000;
  answer.more = true;
  append_references_answer(out, answer, ResourceId("r"));
  EXPECT_EQ(out, R"({"resource_id":"r","count":5000,"nodes":["a","b"],"next":"b"})");
}

TEST(ReferencesJson, RefusalsTellTheirCode) {
  ReferencesAnswer answer;
  for (const Refusal refusal : {Refusal::references_off, Refusal::busy}) {
    answer.refusal = refusal;
    std::string read, change, node;
    EXPECT_EQ(append_references_answer(read, answer, ResourceId("r")), 403u);
    EXPECT_EQ(append_reference_change(change, answer, ResourceId("r")), 403u);
    EXPECT_EQ(append_release_node_answer(node, answer, NodeId("n")), 403u);
    EXPECT_EQ(Parsed(read).text("/code"), error_row(error_of(refusal)).code);
    EXPECT_FALSE(Parsed(change).truth("/changed"));
    EXPECT_FALSE(Parsed(node).truth("/changed"));
  }
}

TEST(BatchJson, EachAnswerBeginsWithItsStatus) {
  std::string out;
  LockAnswer lock;
  lock.refusal = Refusal::queue_full;
  UnlockAnswer unlock;
  RenewAnswer renew;
  renew.refusal = Refusal::stale_token;
  BatchFrame frame(out);
  frame.next_answer();
  append_lock_answer(out, lock, kLane, AnswerForm::in_batch);
  frame.next_answer();
  append_unlock_answer(out, unlock, AnswerForm::in_batch);
  frame.next_answer();
  append_renew_answer(out, renew, AnswerForm::in_batch);
  frame.next_answer();
  append_cancel_answer(out, {true}, AnswerForm::in_batch);
  frame.next_answer();
  append_error_json(out, make_error(ErrorCode::invalid), AnswerForm::in_batch);
  frame.finish();
  const Parsed parsed(out);
  EXPECT_TRUE(out.starts_with(R"({"answers":[{"status":429,"acquired":false)")) << out;
  EXPECT_EQ(parsed.number("/answers/1/status"), 200u);
  EXPECT_TRUE(parsed.truth("/answers/1/released"));
  EXPECT_EQ(parsed.number("/answers/2/status"), 403u);
  EXPECT_EQ(parsed.number("/answers/3/status"), 200u);
  EXPECT_EQ(parsed.number("/answers/4/status"), 400u);

  std::string empty;
  BatchFrame(empty).finish();
  EXPECT_EQ(empty, R"({"answers":[]})");
}

}  // namespace
}  // namespace turnstile
