// What keeps a blob that this node uses from being taken away: second names, confirmed counts, and removals
// that can be undone. The whole life, with accidents, is in test/lives.
#include "content/lives.h"

#include <list>
#include <thread>

#include "content/test_arbiter.h"
#include "content/test_directory.h"
#include "content/write_session.h"

namespace turnstile::content {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class LivesTest : public testing::Test {
 protected:
  std::unique_ptr<ContentStore> open(const std::string& node, std::vector<std::string> read_roots = {},
                                     Lives::Options options = {}) {
    Outcome<std::unique_ptr<NodeState>> state = NodeState::open(directory_ / ("state-" + node));
    EXPECT_TRUE(state) << state.error().message;
    Outcome<BlobStore> blobs = BlobStore::open({root_, std::move(read_roots), node, false});
    EXPECT_TRUE(blobs) << blobs.error().message;
    auto store = std::make_unique<ContentStore>(std::move(*blobs), std::move(*state),
                                                std::make_unique<ScriptedArbiter>(script_), metrics_,
                                                std::move(options));
    EXPECT_TRUE(store->start());
    return store;
  }
  Outcome<void> pull(ContentStore& store, const std::string& bytes = "abc") {
    WriteSession session(store);
    WriteMessage message;
    message.ref = ref_of(bytes);
    const Outcome<WriteAnswer> there = session.handle(message);
    if (!there) return std::unexpected(there.error());
    message.action = WriteAction::commit;
    message.offset = there->offset;
    message.data = std::string_view(bytes).substr(size_t(there->offset));
    const Outcome<WriteAnswer> done = session.handle(message);
    if (!done) return std::unexpected(done.error());
    return {};
  }
  const std::string& ref_of(const std::string& bytes) {
    return refs_.emplace_back("default/1/layer-" + digest_of(bytes).text());
  }
  static std::string read(ContentStore& store, const Digest& digest) {
    const Outcome<std::shared_ptr<const OpenBlob>> blob = store.open(digest);
    if (!blob) return blob.error().message;
    std::string bytes(size_t((*blob)->size), '\0');
    (void)read_at((*blob)->fd.get(), 0, bytes);
    return bytes;
  }

  const TestDirectory directory_;
  const std::string root_ = directory_ / "root";
  const Digest digest_ = digest_of("abc");
  ArbiterScript script_;
  std::list<std::string> refs_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
};

TEST_F(LivesTest, WhatANodeUsesIsReadAlsoWhenAnotherHasRemovedIt) {
  const auto a = open("a");
  ASSERT_TRUE(pull(*a));
  ASSERT_TRUE(fs::remove(blob_path(root_, digest_)));
  EXPECT_EQ(read(*a, digest_), "abc");
  const auto again = [&] {
    auto& lives = a->lives();
    (void)lives.work();
    return fs::exists(blob_path(root_, digest_));
  };
  EXPECT_FALSE(again()) << "this use was confirmed: nothing is told again, and nothing looked after";
  script_.forgotten = true;
  EXPECT_TRUE(again())
      << "a server that has forgotten is told, and what others should see is published again";
}

TEST_F(LivesTest, AUseThatNobodyConfirmsIsSafeByItsSecondName) {
  script_.confirmed = false;
  const auto a = open("a");
  ASSERT_TRUE(pull(*a));
  EXPECT_TRUE(fs::exists(use_path(root_, digest_, "a")));
  EXPECT_EQ(a->lives().unconfirmed(), 1u);
  EXPECT_FALSE(fs::exists(root_ + "/uses/a/confirmed-by")) << "others must not rely on the count";
  EXPECT_FALSE(a->lives().work()) << "it is told";
  EXPECT_EQ(a->lives().unconfirmed(), 0u);
}

TEST_F(LivesTest, OnceAFullDiskHasRoomAgainItIsWrittenDownWhoseSecondNamesTheseAre) {
  Lives::Clock::time_point now{};
  const fs::path owner = root_ + "/uses/a/owner";
  fs::create_directories(owner);  // stands for a disk that takes no file
  const auto a = open("a", {}, {.machine = "the machine", .now = [&] { return now; }});
  (void)a->lives().work();
  fs::remove(owner);
  (void)a->lives().work();
  EXPECT_FALSE(fs::exists(owner)) << "not again and again";
  now += 2min;
  (void)a->lives().work();
  EXPECT_TRUE(file_text(owner).ends_with("\nthe machine\n"));
}

TEST_F(LivesTest, ANoteForOtherNodesThatCannotBeWrittenIsNotTriedAgainAndAgain) {
  Lives::Clock::time_point now{};
  const fs::path note = root_ + "/uses/a/confirmed-by";
  fs::create_directories(root_ + "/uses/a/.confirmed-by");  // stands for a disk that takes no file
  script_.life = "7";
  const auto a = open("a", {}, {.now = [&] { return now; }});
  (void)a->lives().work();
  fs::remove(root_ + "/uses/a/.confirmed-by");
  (void)a->lives().work();
  EXPECT_FALSE(fs::exists(note));
  now += 2min;
  (void)a->lives().work();
  EXPECT_EQ(file_text(note), "7");
}

TEST_F(LivesTest, AfterARestartOnlyABlobWhoseEndTheServerMayHaveHeardOfWaitsForIt) {
  script_.remote = true;
  {
    const auto a = open("a");
    WriteSession begun(*a);
    WriteMessage message;
    message.ref = ref_of("abc");
    ASSERT_TRUE(begun.handle(message));
  }
  {
    const auto a = open("a");
    const Outcome<void> pulled = pull(*a);
    ASSERT_TRUE(pulled) << pulled.error().message;
    script_.removal = Removal::Kind::not_asked;
    ASSERT_TRUE(a->remove(digest_));
  }
  {
    const auto a = open("a");
    const Outcome<void> pulled = pull(*a);
    ASSERT_TRUE(pulled) << pulled.error().message;
    script_.removal = Removal::Kind::unknown;
    ASSERT_TRUE(a->remove(digest_));
  }
  const auto a = open("a", {}, {.late = 0ms});
  const Outcome<void> pulled = pull(*a);
  ASSERT_FALSE(pulled) << "the end of the last use may come after the beginning of this one";
  EXPECT_EQ(pulled.error().code, ErrorClass::unavailable);
  script_.removal = Removal::Kind::settled;
  (void)a->lives().work();
  EXPECT_TRUE(pull(*a));
}

TEST_F(LivesTest, WithoutASecondNameAUseThatNobodyConfirmsIsNone) {
  put_file(blob_path(directory_ / "other", digest_), "abc");
  script_.confirmed = false;
  const auto a = open("a", {directory_ / "other"});
  const Outcome<void> pulled = pull(*a);
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorClass::unavailable) << pulled.error().message;
  EXPECT_FALSE(a->info(digest_));
  script_.confirmed = true;
  EXPECT_TRUE(pull(*a));
}

TEST_F(LivesTest, ARemovalSparesWhatAnotherNodeHasASecondNameFor) {
  const auto a = open("a"), b = open("b");
  ASSERT_TRUE(pull(*a) && pull(*b));
  ASSERT_TRUE(a->remove(digest_));  // by a server that counts nobody
  EXPECT_EQ(script_.heard.back(), "failed: it has a second name");
  EXPECT_TRUE(fs::exists(blob_path(root_, digest_)));
  EXPECT_EQ(read(*b, digest_), "abc");
  ASSERT_TRUE(b->remove(digest_));
  EXPECT_FALSE(fs::exists(blob_path(root_, digest_)));
}

TEST_F(LivesTest, ThatABlobHasASecondNameIsSaidOnce) {
  Lives::Clock::time_point now{};
  const auto a = open("a", {}, {.now = [&] { return now; }});
  ASSERT_TRUE(pull(*a));
  fs::create_hard_link(blob_path(root_, digest_), directory_ / "backup");
  testing::internal::CaptureStderr();
  ASSERT_TRUE(a->remove(digest_));
  for (int i = 0; i < 5; ++i, now += 1h) (void)a->lives().work();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_GE(script_.count("failed: it has a second name"), 5u);
  const size_t first = said.find("has a second name");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("has a second name", first + 1), std::string::npos) << said;
}

TEST_F(LivesTest, InAYoungLifeOfTheServerNothingIsRemovedWhereLinksAreEither) {
  const auto a = open("a");
  ASSERT_TRUE(pull(*a));
  script_.settled = false;
  ASSERT_TRUE(a->remove(digest_));
  EXPECT_EQ(script_.count("end"), 0u) << "others may use it without a second name, and not have said so yet";
  EXPECT_TRUE(fs::exists(blob_path(root_, digest_)));
}

TEST_F(LivesTest, WhatWasDamagedAndPulledAgainByOneNodeHasASecondNameOfEachAgain) {
  Lives::Clock::time_point now{};
  const auto a = open("a"), b = open("b", {}, {.now = [&] { return now; }});
  ASSERT_TRUE(pull(*a) && pull(*b));
  (void)b->lives().work();
  const Outcome<OpenBlob> damaged = a->blobs().find(digest_);
  ASSERT_TRUE(*a->blobs().put_damaged_away(digest_, *damaged));
  EXPECT_FALSE(fs::exists(use_path(root_, digest_, "b")));
  ASSERT_TRUE(a->remove(digest_) && pull(*a));
  now += 1min;
  (void)b->lives().work();
  EXPECT_TRUE(fs::exists(use_path(root_, digest_, "b")));
  ASSERT_TRUE(a->remove(digest_));  // by a server that counts nobody
  EXPECT_EQ(read(*b, digest_), "abc");
}

TEST_F(LivesTest, TheSecondNameOfANodeThatPeopleHaveReleasedIsTaken) {
  const auto a = open("a");
  {
    const auto dead = open("dead");
    ASSERT_TRUE(pull(*dead) && pull(*a));
    script_.life = "7";
    (void)dead->lives().work();
  }
  EXPECT_EQ(file_text(root_ + "/uses/dead/confirmed-by"), "7");
  script_.life = "8";
  ASSERT_TRUE(a->remove(digest_));
  EXPECT_TRUE(fs::exists(blob_path(root_, digest_))) << "it has not told this life: it may be forgotten";
  script_.life = "7";
  const auto patient = open("c", {}, {.later = 1ms});
  ASSERT_TRUE(pull(*patient));
  script_.counts_nobody = false;
  ASSERT_TRUE(patient->remove(digest_));
  for (int i = 0; i < 10; ++i) {
    (void)patient->lives().work();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(fs::exists(use_path(root_, digest_, "dead"))) << "it was told meanwhile that it uses the blob";
  script_.counts_nobody = true;
  for (int i = 0; i < 30'000 && fs::exists(blob_path(root_, digest_)); ++i) {
    (void)patient->lives().work();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(fs::exists(blob_path(root_, digest_)));
  EXPECT_FALSE(fs::exists(use_path(root_, digest_, "dead")));
}

TEST_F(LivesTest, WhatIsTakenBackIsSaidAgainOnlyWhenAllIsTold) {
  script_.life = "7";
  {
    const auto a = open("a");
    ASSERT_TRUE(pull(*a));
    (void)a->lives().work();
    ASSERT_EQ(file_text(root_ + "/uses/a/confirmed-by"), "7");
  }
  const auto again = open("a");
  EXPECT_FALSE(fs::exists(root_ + "/uses/a/confirmed-by")) << "an import may have come in between";
  (void)again->lives().work();
  EXPECT_EQ(file_text(root_ + "/uses/a/confirmed-by"), "7");
}

TEST_F(LivesTest, ASecondNameThatWasBeingTakenInACrashIsBroughtBack) {
  const auto b = open("b");
  ASSERT_TRUE(pull(*b));
  {
    const auto a = open("a");
    ASSERT_TRUE(pull(*a));
  }
  ASSERT_TRUE((*NodeState::open(directory_ / "state-a"))->move(digest_, Stage::in_use, Stage::leaving));
  const fs::path second = use_path(root_, digest_, "b");
  fs::rename(second, second.parent_path() / (".leaving." + std::string(digest_.hex().substr(0, 32)) + ".a"));
  script_.removal = Removal::Kind::settled;
  const auto again = open("a");
  EXPECT_TRUE(fs::exists(second));
}

TEST_F(LivesTest, WhatACrashLeftAsideIsBroughtBack) {
  {
    const auto a = open("a");
    ASSERT_TRUE(pull(*a));
  }
  Outcome<BlobStore> blobs = BlobStore::open({root_, {}, "a", false});
  ASSERT_TRUE((*NodeState::open(directory_ / "state-a"))->move(digest_, Stage::in_use, Stage::leaving));
  ASSERT_TRUE(blobs->put_aside(digest_, true));
  EXPECT_FALSE(fs::exists(blob_path(root_, digest_)));
  script_.removal = Removal::Kind::settled;  // others use it
  const auto again = open("a");
  EXPECT_TRUE(fs::exists(blob_path(root_, digest_)));
}

TEST_F(LivesTest, WhatIsKeptIsNotShownAndComesBackWithoutAQuestion) {
  const auto a = open("a", {}, {.keep_unused = 1h});
  ASSERT_TRUE(pull(*a));
  ASSERT_TRUE(a->remove(digest_));
  EXPECT_FALSE(a->info(digest_));
  EXPECT_EQ(a->totals(Stage::kept).blobs, 1u);
  EXPECT_EQ(a->totals(Stage::kept).bytes, 3);
  (void)a->lives().work();
  EXPECT_EQ(script_.count("end"), 0u);
  const size_t heard = script_.heard.size();
  ASSERT_TRUE(pull(*a));
  EXPECT_EQ(script_.heard.size(), heard);
  EXPECT_TRUE(a->info(digest_));
  EXPECT_EQ(a->totals(Stage::kept).blobs, 0u);
}

TEST_F(LivesTest, WhatIsKeptIsHashedBeforeItIsUsedAgain) {
  const auto a = open("a", {}, {.keep_unused = 1h});
  ASSERT_TRUE(pull(*a));
  ASSERT_TRUE(a->remove(digest_));
  const fs::path path = blob_path(root_, digest_);
  fs::permissions(path, fs::perms::owner_all);
  std::ofstream(path) << "xyz";
  ASSERT_TRUE(pull(*a));
  EXPECT_EQ(read(*a, digest_), "abc");
  EXPECT_EQ(metrics_->value(Count::damaged_blobs), 1u);
}

TEST_F(LivesTest, WhatIsKeptIsVerified) {
  const auto a = open("a", {}, {.keep_unused = 1h});
  ASSERT_TRUE(pull(*a));
  ASSERT_TRUE(a->remove(digest_));
  ASSERT_EQ(a->all().size(), 1u);
  EXPECT_EQ(a->mend({digest_, Finding::Kind::damaged, {}, std::move(*a->blobs().find(digest_))}),
            ContentStore::Mending::done);
  EXPECT_FALSE(fs::exists(blob_path(root_, digest_)));
}

TEST_F(LivesTest, WhatIsKeptGoesWhenItsTimeIsOverAndTheOldestFirstWhenItIsTooMuch) {
  const auto a = open("a", {}, {.keep_unused = 1h, .keep_unused_bytes = 4});
  ASSERT_TRUE(pull(*a, "abc") && pull(*a, "def"));
  ASSERT_TRUE(a->remove(digest_of("def")));
  ASSERT_TRUE(a->remove(digest_of("abc")));
  (void)a->lives().work();
  EXPECT_FALSE(fs::exists(blob_path(root_, digest_of("def"))));
  EXPECT_TRUE(fs::exists(blob_path(root_, digest_of("abc"))));
  const auto b = open("b", {}, {.keep_unused = 1ms});
  ASSERT_TRUE(pull(*b, "ghi"));
  ASSERT_TRUE(b->remove(digest_of("ghi")));
  std::this_thread::sleep_for(2ms);  // the time itself
  (void)b->lives().work();
  EXPECT_FALSE(fs::exists(blob_path(root_, digest_of("ghi"))));
}

TEST_F(LivesTest, AManifestWithOtherBytesIsPutAwayAndPulledAgain) {
  put_file(blob_path(root_, digest_), "xyz");
  const auto a = open("a");
  ASSERT_TRUE(pull(*a));
  EXPECT_EQ(read(*a, digest_), "abc");
  EXPECT_EQ(metrics_->value(Count::damaged_blobs), 1u);
  EXPECT_EQ(file_text(root_ + "/damaged/" + std::string(digest_.hex()) + ".a"), "xyz");
}

TEST_F(LivesTest, AnIngestThatWasPublishedIsNotWrittenToAgain) {
  const auto a = open("a");
  {
    WriteSession session(*a);
    WriteMessage message;
    message.ref = ref_of("abc");
    message.action = WriteAction::write;
    message.data = "ab";
    ASSERT_TRUE(session.handle(message));
  }
  fs::path data;
  for (const auto& entry : fs::recursive_directory_iterator(root_ + "/ingest"))
    if (entry.path().filename() == "data") data = entry.path();
  ASSERT_FALSE(data.empty());
  fs::create_hard_link(data, directory_ / "published");  // a crash between the link and the unlink
  ASSERT_TRUE(pull(*a));
  EXPECT_EQ(file_text(directory_ / "published"), "ab");
}

}  // namespace
}  // namespace turnstile::content
