// kill -9 in the middle of writing, publishing and remembering. A program of its own: its child processes
// must not inherit other tests' threads.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <set>

#include "content/test_directory.h"
#include "content/write_session.h"

namespace turnstile::content {
namespace {

namespace fs = std::filesystem;

// Blob `number`: some are small, some take a few writes.
std::string bytes_of(int number) {
  std::string bytes = fmt::format("blob {} ", number);
  while (bytes.size() < size_t(number % 5) * 100'000) bytes += bytes;
  return bytes;
}

// Writes and commits one blob after the other, in pieces, and tells the parent through `acknowledged` of each
// that was committed. Resumes whatever an earlier life left.
void write_for_ever(const std::string& root, const std::string& state, int first, int acknowledged) {
  const auto node = open_node(root, state);
  for (int number = first;; ++number) {
    const std::string bytes = bytes_of(number);
    const std::string ref = "default/1/layer-" + digest_of(bytes).text();
    WriteSession session(*node);
    Outcome<WriteAnswer> answer = session.handle({.ref = ref, .expected = {}, .data = {}, .labels = {}});
    while (answer && answer->offset < int64_t(bytes.size()))
      answer = session.handle({.action = WriteAction::write,
                               .ref = {},
                               .expected = {},
                               .offset = answer->offset,
                               .data = std::string_view(bytes).substr(size_t(answer->offset), 30'000),
                               .labels = {}});
    if (answer)
      answer = session.handle({.action = WriteAction::commit,
                               .ref = {},
                               .total = int64_t(bytes.size()),
                               .expected = digest_of(bytes).text(),
                               .data = {},
                               .labels = {{"k", "v"}}});
    if (!answer || ::write(acknowledged, &number, sizeof number) != sizeof number) _exit(1);
  }
}

// Runs it until `count` blobs were acknowledged, then kills it at once. Returns the last one.
int run_and_kill(const std::string& root, const std::string& state, int first, int count) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    write_for_ever(root, state, first, ends[1]);
  }
  ::close(ends[1]);
  int last = first - 1;
  for (int i = 0; i < count; ++i) EXPECT_EQ(::read(ends[0], &last, sizeof last), ssize_t(sizeof last));
  ::usleep(useconds_t(last * 7919 % 3000));  // not a wait for something: the moment of the kill is to vary
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  for (int number; ::read(ends[0], &number, sizeof number) == ssize_t(sizeof number);) last = number;
  ::close(ends[0]);
  return last;
}

// Those that `checked` does not name yet: a published file is never written again.
void expect_right_digests(const fs::path& blobs, std::set<fs::path>& checked) {
  for (const auto& file : fs::directory_iterator(blobs)) {
    if (!checked.insert(file.path()).second) continue;
    ASSERT_EQ(std::string(digest_of(file_text(file.path())).hex()), file.path().filename().string());
  }
}

void expect_acknowledged(const ContentStore& node, const std::vector<Digest>& acknowledged) {
  for (const Digest& digest : acknowledged) {
    const Outcome<BlobInfo> info = node.info(digest);
    ASSERT_TRUE(info) << digest.text() << " was acknowledged and is gone";
    ASSERT_EQ(info->labels, (Labels{{"k", "v"}}));
  }
}

TEST(Crash, NeverLeavesABlobWithAWrongDigestOrLosesACommittedOne) {
  const TestDirectory directory;
  const std::string root = directory / "root", state = directory / "state", blobs = root + "/blobs/sha256";
  std::set<fs::path> checked;
  std::vector<Digest> acknowledged;
  for (int round = 0; round < 50; ++round) {
    const int first = int(acknowledged.size()) + 1;
    const int last = run_and_kill(root, state, first, 2 + round % 3);
    for (int number = first; number <= last; ++number) acknowledged.push_back(digest_of(bytes_of(number)));
    expect_right_digests(blobs, checked);
    const auto node = open_node(root, state);
    expect_acknowledged(*node, acknowledged);
    // One that was published and not yet this node's is removed at the start; it may come again.
    std::erase_if(checked, [](const fs::path& path) { return !fs::exists(path); });
    const std::vector<BlobInfo> all = node->list(*Filter::parse(std::vector<std::string>()));
    for (const BlobInfo& info : all) ASSERT_TRUE(node->open(info.digest)) << "a line without a blob";
    ASSERT_EQ(size_t(std::distance(fs::directory_iterator(blobs), {})), all.size())
        << "a blob without a line";
    const auto ingests = node->statuses(*Filter::parse(std::vector<std::string>()));
    ASSERT_TRUE(ingests);
    ASSERT_LE(ingests->size(), 1u);  // the one under way, which the next round resumes
    ASSERT_EQ(size_t(std::distance(fs::directory_iterator(root + "/ingest/node-a"), {})), ingests->size());
  }
  checked.clear();
  expect_right_digests(blobs, checked);
}

}  // namespace
}  // namespace turnstile::content
