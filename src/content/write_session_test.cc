// The rules of a Write stream: arbitration, adoption, and what each end of a stream means.
#include "content/write_session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "content/test_arbiter.h"
#include "content/test_directory.h"

namespace {
bool has_links = true;
}  // namespace

// The test program's own, which the linker prefers: a file system without hard links.
extern "C" int linkat(int from, const char* name, int to, const char* new_name, int flags) {
  if (has_links) return int(::syscall(SYS_linkat, from, name, to, new_name, flags));
  errno = EPERM;
  return -1;
}

namespace turnstile::content {
namespace {

using testing::Test;

class WriteSessionTest : public Test {
 protected:
  static WriteMessage stat(std::string_view ref, int64_t total = 0) {
    return {
        .action = WriteAction::stat, .ref = ref, .total = total, .expected = {}, .data = {}, .labels = {}};
  }
  static WriteMessage write(int64_t offset, std::string_view data) {
    return {.action = WriteAction::write,
            .ref = {},
            .expected = {},
            .offset = offset,
            .data = data,
            .labels = {}};
  }
  static WriteMessage commit(int64_t total, std::string_view expected, Labels labels = {}) {
    return {.action = WriteAction::commit,
            .ref = {},
            .total = total,
            .expected = expected,
            .offset = 0,
            .data = {},
            .labels = std::move(labels)};
  }
  // The last three words of what the arbiter heard are enough for most tests.
  std::vector<std::string> heard() const {
    std::vector<std::string> all = script_.heard;
    std::erase_if(all, [](const std::string& what) { return what.starts_with("resume"); });
    return all;
  }
  void pull(const std::string& bytes) {
    WriteSession session(*node_);
    const std::string ref = ref_of(bytes);
    ASSERT_TRUE(session.handle(stat(ref)));
    ASSERT_TRUE(session.handle(write(0, bytes)));
    const Outcome<WriteAnswer> done = session.handle(commit(0, ""));
    ASSERT_TRUE(done) << done.error().message;
  }
  static std::string ref_of(const std::string& bytes) { return "default/1/layer-" + digest_of(bytes).text(); }

  TestDirectory directory_;
  ArbiterScript script_;
  std::unique_ptr<ContentStore> node_ =
      open_node(directory_ / "root", directory_ / "state", {directory_ / "."},
                std::make_unique<ScriptedArbiter>(script_));
  const std::string bytes_ = "layer";
  const Digest digest_ = digest_of(bytes_);
  const std::string ref_ = ref_of(bytes_);
};

TEST_F(WriteSessionTest, D4_CommitThenCloseReportsSuccessExactlyOnce) {
  {
    WriteSession session(*node_);
    ASSERT_TRUE(session.handle(stat(ref_, 5)));
    ASSERT_TRUE(session.handle(write(0, bytes_)));
    session.catch_up(bytes_);
    const Outcome<WriteAnswer> answer = session.handle(commit(5, digest_.text(), {{"k", "v"}}));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->digest, digest_.text());
    EXPECT_EQ(answer->offset, 5);
    EXPECT_TRUE(session.committed());
  }
  EXPECT_EQ(heard(), (std::vector<std::string>{"write", "succeeded"}));
  EXPECT_EQ(node_->info(digest_)->labels, (Labels{{"k", "v"}}));
}

TEST_F(WriteSessionTest, AWriteThatFailsTellsWhoeverWaitsWhy) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  WriteSession session(*node_);
  ASSERT_TRUE(session.handle(stat(ref_)));
  const rlimit full{2, before.rlim_max};  // stands for a full disk
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const Outcome<WriteAnswer> answer = session.handle(write(0, bytes_));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(answer);
  EXPECT_EQ(heard(), (std::vector<std::string>{"write", "failed: " + answer.error().message}));
}

TEST_F(WriteSessionTest, AStreamThatEndsWithoutCommitFreesTheTicketAndKeepsTheBytes) {
  {
    WriteSession session(*node_);
    ASSERT_TRUE(session.handle(stat(ref_)));
    ASSERT_TRUE(session.handle(write(0, "lay")));
  }
  EXPECT_EQ(heard(), (std::vector<std::string>{"write", "failed: abandoned"}));
  EXPECT_EQ(node_->status(ref_)->offset, 3);
  EXPECT_FALSE(node_->info(digest_));
}

TEST_F(WriteSessionTest, AStalledStreamGivesItsRightAwayAndAsksAnewBeforeItPublishes) {
  WriteSession session(*node_);
  ASSERT_TRUE(session.handle(stat(ref_)));
  ASSERT_TRUE(session.handle(write(0, "lay")));
  session.stalled();
  session.stalled();
  EXPECT_EQ(heard(), (std::vector<std::string>{"write", "failed: stalled"}));
  EXPECT_EQ(node_->status(ref_)->offset, 3) << "what was written stays";
  ASSERT_TRUE(session.handle(write(3, "er"))) << "it may go on";

  script_.write = Decision::Kind::wait;  // another node has taken over
  EXPECT_EQ(session.handle(commit(5, digest_.text())).error().code, ErrorClass::unavailable);
  EXPECT_FALSE(std::filesystem::exists(blob_path(directory_ / "root", digest_)));
  script_.write = Decision::Kind::write;  // it has failed
  EXPECT_TRUE(session.handle(commit(5, digest_.text())));
  EXPECT_EQ(script_.heard.back(), "succeeded");
  EXPECT_TRUE(node_->info(digest_));
}

TEST_F(WriteSessionTest, BytesOfAnotherDigestAreAFailureThatOthersAreToldOfAtOnce) {
  WriteSession session(*node_);
  ASSERT_TRUE(session.handle(stat(ref_)));
  ASSERT_TRUE(session.handle(write(0, "a lie")));
  const Outcome<WriteAnswer> committed = session.handle(commit(0, digest_.text()));
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorClass::failed_precondition);
  EXPECT_EQ(heard(), (std::vector<std::string>{"write", "failed: " + committed.error().message}));
  EXPECT_FALSE(std::filesystem::exists(blob_path(directory_ / "root", digest_)));
}

TEST_F(WriteSessionTest, AnotherNodeAtItIsUnavailableAtOnceAndLeavesNoIngest) {
  script_.write = Decision::Kind::wait;
  WriteSession session(*node_);
  EXPECT_EQ(session.handle(stat(ref_)).error().code, ErrorClass::unavailable);
  EXPECT_FALSE(node_->status(ref_));
}

TEST_F(WriteSessionTest, ABlobOfAnotherNodeIsAdoptedWithoutAByte) {
  put_file(blob_path(directory_ / ".", digest_), bytes_);  // in the read root
  EXPECT_EQ(node_->info(digest_).error().code, ErrorClass::not_found);
  EXPECT_TRUE(node_->list(*Filter::parse(std::vector<std::string>())).empty());
  {
    WriteSession session(*node_);
    const Outcome<WriteAnswer> answer = session.handle(stat(ref_, 5));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->offset, 5);
    EXPECT_EQ(answer->total, 5);
    EXPECT_EQ(answer->digest, digest_.text());
    EXPECT_FALSE(node_->info(digest_));  // not before the commit
    ASSERT_TRUE(session.handle(commit(5, digest_.text())));
  }
  EXPECT_EQ(heard(), (std::vector<std::string>{"adopt", "succeeded"}));  // P9: no lock for what is there
  EXPECT_EQ(node_->info(digest_)->size, 5);
  EXPECT_TRUE(node_->open(digest_));
}

TEST_F(WriteSessionTest, AnAdoptionDropsWhatThisNodeHadBegunBefore) {
  {
    WriteSession session(*node_);
    ASSERT_TRUE(session.handle(stat(ref_, 5)));
    ASSERT_TRUE(session.handle(write(0, bytes_.substr(0, 2))));
  }
  ASSERT_EQ(node_->status(ref_)->offset, 2);
  put_file(blob_path(directory_ / ".", digest_), bytes_);  // another node was faster
  WriteSession session(*node_);
  ASSERT_TRUE(session.handle(stat(ref_, 5)));
  ASSERT_TRUE(session.handle(commit(5, digest_.text())));
  EXPECT_FALSE(node_->status(ref_));
}

TEST_F(WriteSessionTest, AnAdoptionWithoutCommitIsNone) {
  put_file(blob_path(directory_ / ".", digest_), bytes_);
  {
    WriteSession session(*node_);
    ASSERT_TRUE(session.handle(stat(ref_)));
    EXPECT_EQ(session.handle(write(0, "other")).error().code, ErrorClass::failed_precondition);
  }
  EXPECT_EQ(heard(), (std::vector<std::string>{"adopt", "failed: abandoned"}));
  EXPECT_FALSE(node_->info(digest_));
}

TEST_F(WriteSessionTest, LooksAgainAfterTheLockWasTaken) {
  script_.on_write = [&] { put_file(blob_path(directory_ / ".", digest_), bytes_); };
  WriteSession session(*node_);
  const Outcome<WriteAnswer> answer = session.handle(stat(ref_, 5));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->offset, 5);
  ASSERT_TRUE(session.handle(commit(5, digest_.text())));
  EXPECT_EQ(heard(), (std::vector<std::string>{"write", "succeeded"}));
}

TEST_F(WriteSessionTest, ADamagedFileOnAnotherNodesDiskIsNotAdoptedAndPulledAgain) {
  put_file(blob_path(directory_ / ".", digest_), "wrong");
  script_.write = Decision::Kind::adopt;  // others use it
  const Outcome<WriteAnswer> told = WriteSession(*node_).handle(stat(ref_, 5));
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ErrorClass::unavailable);
  EXPECT_NE(told.error().message.find("damaged"), std::string::npos) << told.error().message;
  script_.write = Decision::Kind::write;  // it has waited for a good one long enough
  pull(bytes_);
  EXPECT_EQ(file_text(blob_path(directory_ / "root", digest_)), bytes_);
  EXPECT_EQ((*node_->open(digest_))->size, 5);
  EXPECT_EQ(file_text(blob_path(directory_ / ".", digest_)), "wrong") << "only that node can put it away";
}

TEST_F(WriteSessionTest, NorIsItWhenTheDigestIsKnownOnlyAtTheCommit) {
  put_file(blob_path(directory_ / ".", digest_), "wrong");
  WriteSession session(*node_);
  ASSERT_TRUE(session.handle(stat("some-ref")));
  ASSERT_TRUE(session.handle(write(0, bytes_)));
  ASSERT_TRUE(session.handle(commit(0, "")));
  EXPECT_EQ(file_text(blob_path(directory_ / "root", digest_)), bytes_);
}

TEST_F(WriteSessionTest, WhatVerificationFoundDamagedOnAnotherDiskIsNotAdoptedHoweverLargeItIs) {
  const std::string large(2 << 20, 'x');
  const Digest digest = digest_of(large);
  const std::string ref = ref_of(large);
  put_file(blob_path(directory_ / ".", digest), "wrong" + large.substr(5));
  const auto opens = [&] {
    WriteSession session(*node_);
    const Outcome<WriteAnswer> answer = session.handle(stat(ref));
    EXPECT_TRUE(answer) << answer.error().message;
    const bool adopts = answer && answer->offset > 0;
    EXPECT_TRUE(!adopts || session.handle(commit(0, "")));
    return adopts;
  };
  ASSERT_TRUE(opens());
  Outcome<OpenBlob> seen = node_->blobs().find(digest);
  EXPECT_EQ(node_->mend({digest, Finding::Kind::damaged, {}, std::move(*seen)}),
            ContentStore::Mending::elsewhere);
  script_.removal = Removal::Kind::settled;  // others use it
  ASSERT_TRUE(node_->remove(digest));
  EXPECT_FALSE(opens());
}

TEST_F(WriteSessionTest, WhileNobodyCountsThisNodeABlobOnAnotherDiskIsDownloadedAndNotAdopted) {
  put_file(blob_path(directory_ / ".", digest_), bytes_);
  script_.alone = true;
  script_.confirmed = false;
  pull(bytes_);
  EXPECT_EQ(file_text(blob_path(directory_ / "root", digest_)), bytes_);
  EXPECT_TRUE(node_->blobs().is_guarded(digest_));
}

TEST_F(WriteSessionTest, LooksAgainAfterAnAdoptionHadToBeAskedForAnew) {
  put_file(blob_path(directory_ / ".", digest_), bytes_);
  WriteSession session(*node_);
  ASSERT_TRUE(session.handle(stat(ref_, 5)));
  script_.valid = false;  // it stood still for too long; meanwhile the last user removes the blob
  script_.on_adoption = [&] { std::filesystem::remove(blob_path(directory_ / ".", digest_)); };
  EXPECT_EQ(session.handle(commit(5, digest_.text())).error().code, ErrorClass::unavailable);
  EXPECT_EQ(heard().back(), "failed: it was removed meanwhile");
  EXPECT_FALSE(node_->info(digest_));
}

TEST_F(WriteSessionTest, LooksAgainWhereNoSecondNameKeepsWhatItAdopts) {
  put_file(blob_path(directory_ / "root", digest_), bytes_);
  has_links = false;
  WriteSession session(*node_);
  EXPECT_TRUE(session.handle(stat(ref_, 5)));
  std::filesystem::remove(blob_path(directory_ / "root", digest_));
  const Outcome<WriteAnswer> committed = session.handle(commit(5, digest_.text()));
  has_links = true;
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorClass::unavailable);
  EXPECT_EQ(heard().back(), "failed: it was removed meanwhile");
  EXPECT_FALSE(node_->info(digest_));
}

TEST_F(WriteSessionTest, FinishedElsewhereButNotSeenHereYetIsUnavailable) {
  script_.write = Decision::Kind::adopt;
  WriteSession session(*node_);
  EXPECT_EQ(session.handle(stat(ref_)).error().code, ErrorClass::unavailable);
}

TEST_F(WriteSessionTest, ALostRightIsAskedForAgainAtTheCommit) {
  WriteSession session(*node_);
  ASSERT_TRUE(session.handle(stat(ref_)));
  ASSERT_TRUE(session.handle(write(0, bytes_)));
  script_.valid = false;
  script_.write = Decision::Kind::wait;
  EXPECT_EQ(session.handle(commit(5, digest_.text())).error().code, ErrorClass::unavailable);
  EXPECT_FALSE(std::filesystem::exists(blob_path(directory_ / "root", digest_)));
  EXPECT_EQ(node_->status(ref_)->offset, 5);
}

TEST_F(WriteSessionTest, ARefWithoutDigestAsksAtTheCommit) {
  WriteSession session(*node_);
  ASSERT_TRUE(session.handle(stat("some-ref")));
  ASSERT_TRUE(session.handle(write(0, bytes_)));
  EXPECT_TRUE(heard().empty());
  ASSERT_TRUE(session.handle(commit(0, "")));
  EXPECT_EQ(heard(), (std::vector<std::string>{"write", "succeeded"}));
}

TEST_F(WriteSessionTest, D7_WhatExistsAlreadyIsASuccessForTheLockAndDropsTheIngest) {
  WriteSession slow(*node_);
  ASSERT_TRUE(slow.handle(stat(ref_)));
  ASSERT_TRUE(slow.handle(write(0, bytes_)));
  {
    WriteSession quick(*node_);
    ASSERT_TRUE(quick.handle(stat("another-ref")));
    ASSERT_TRUE(quick.handle(write(0, bytes_)));
    ASSERT_TRUE(quick.handle(commit(0, "")));
  }
  EXPECT_EQ(slow.handle(commit(5, digest_.text())).error().code, ErrorClass::already_exists);
  EXPECT_EQ(script_.count("succeeded"), 2u);
  EXPECT_FALSE(node_->status(ref_));
}

TEST_F(WriteSessionTest, P1_TwoDigestsInParallelAreBothThereAfterwards) {
  WriteSession one(*node_), two(*node_);
  const std::string other = "other layer";
  ASSERT_TRUE(one.handle(stat(ref_)));
  ASSERT_TRUE(two.handle(stat(ref_of(other))));
  ASSERT_TRUE(one.handle(write(0, bytes_)));
  ASSERT_TRUE(two.handle(write(0, other)));
  ASSERT_TRUE(two.handle(commit(0, "")));
  ASSERT_TRUE(one.handle(commit(0, "")));
  EXPECT_TRUE(node_->info(digest_));
  EXPECT_TRUE(node_->info(digest_of(other)));
}

TEST_F(WriteSessionTest, P10_EveryMistakeHasItsClass) {
  const auto first = [&](WriteMessage message) { return WriteSession(*node_).handle(message).error().code; };
  EXPECT_EQ(first(stat("")), ErrorClass::invalid_argument);
  WriteMessage bad = stat("r");
  bad.expected = "sha256:../../x";
  EXPECT_EQ(first(bad), ErrorClass::invalid_argument);
  EXPECT_EQ(first(stat("r", -1)), ErrorClass::invalid_argument);
  pull(bytes_);
  WriteMessage known = stat("r");
  known.expected = digest_.text();
  EXPECT_EQ(first(known), ErrorClass::already_exists);

  WriteSession session(*node_);
  ASSERT_TRUE(session.handle(stat("r")));
  ASSERT_TRUE(session.handle(write(0, "abc")));
  EXPECT_EQ(session.handle(write(7, "x")).error().code, ErrorClass::out_of_range);
  EXPECT_EQ(session.handle(commit(9, "")).error().code, ErrorClass::failed_precondition);
  EXPECT_EQ(session.handle(commit(3, digest_of("x").text())).error().code, ErrorClass::failed_precondition);
  EXPECT_EQ(session.handle(commit(3, digest_of("abc").text(), {{"k", std::string(4096, 'v')}})).error().code,
            ErrorClass::invalid_argument);
  EXPECT_TRUE(session.handle(commit(3, digest_of("abc").text())));
  EXPECT_EQ(session.handle(commit(3, "")).error().code, ErrorClass::failed_precondition);

  script_.write = Decision::Kind::error;
  EXPECT_EQ(first(stat(ref_of("never seen"))), ErrorClass::failed_precondition);
}

}  // namespace
}  // namespace turnstile::content
