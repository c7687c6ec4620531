// The storages that outlive a process, with real processes: several at once, and killed half way.
#include <sys/wait.h>

#include <random>

#include "refcount/test_process.h"
#include "refcount/test_support.h"

namespace turnstile::testing {
namespace {

// A running refcount_worker, whose acknowledgements can be read.
class Worker : public ChildProcess {
 public:
  explicit Worker(std::vector<std::string> arguments) : ChildProcess(REFCOUNT_WORKER, std::move(arguments)) {}

  // False: it has ended, and everything has been read.
  bool read(int& thread, int& add) { return std::fscanf(output(), "%d %d", &thread, &add) == 2; }
};

Nodes all_nodes(const RefCountStorage& storage) {
  Nodes all;
  EXPECT_TRUE(storage.for_each([&](const std::string&, const ReferenceCount& count) {
    all.insert(count.nodes.begin(), count.nodes.end());
    return true;
  }));
  return all;
}

class Killed : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Durable, Killed, ::testing::Values("file", "sqlite"),
                         [](const auto& kind) { return std::string(kind.param); });

// Each thread asks for its next add when the last one is acknowledged. So of each thread there must be all
// that were acknowledged, perhaps the one it was at, and nothing more.
TEST_P(Killed, P4_EveryAcknowledgedAddIsThereAndNothingThatWasNeverAskedFor) {
  constexpr int kThreads = 8, kRounds = 10;
  std::mt19937 random(std::random_device{}());
  TemporaryDirectory directory;
  const std::string path = directory / "references";
  Nodes expected;  // of the rounds so far, as they were found
  for (int round = 0; round < kRounds; ++round) {
    const std::string name = "round" + std::to_string(round);
    const auto node = [&](int thread, int add) {
      return name + "-" + std::to_string(thread) + "-" + std::to_string(add);
    };
    std::vector<int> acknowledged(kThreads, 0);
    Worker worker({GetParam(), path, std::to_string(kThreads), "100000", name});
    int until_kill = std::uniform_int_distribution(1, 300)(random), thread, add;
    while (worker.read(thread, add)) {
      ASSERT_EQ(add, acknowledged.at(size_t(thread))++);
      if (--until_kill == 0) worker.kill();
    }
    ASSERT_TRUE(WIFSIGNALED(worker.wait()));
    const Nodes found = all_nodes(*must_open(GetParam(), path));
    for (int t = 0; t < kThreads; ++t) {
      const int count = acknowledged[size_t(t)];
      for (int i = 0; i < count; ++i) expected.insert(node(t, i));
      if (found.contains(node(t, count))) expected.insert(node(t, count));
    }
    ASSERT_EQ(found, expected) << "round " << round;
  }
}

TEST(SqliteProcesses, P4_AddsOfFourProcessesAtOnceAreAllThere) {
  constexpr int kProcesses = 4, kThreads = 10, kAdds = 25;
  TemporaryDirectory directory;
  const std::string path = directory / "references.db";
  {
    std::vector<std::unique_ptr<Worker>>
        workers;  // they also find out together that there is no database yet
    for (int i = 0; i < kProcesses; ++i)
      workers.push_back(std::make_unique<Worker>(std::vector<std::string>{
          "sqlite", path, std::to_string(kThreads), std::to_string(kAdds), "process" + std::to_string(i)}));
    for (auto& worker : workers) {
      int thread, add, acknowledged = 0;
      while (worker->read(thread, add)) ++acknowledged;
      EXPECT_EQ(worker->wait(), 0);
      EXPECT_EQ(acknowledged, kThreads * kAdds);
    }
  }
  EXPECT_EQ(all_nodes(*must_open("sqlite", path)).size(), size_t(kProcesses * kThreads * kAdds));
}

TEST(FileProcesses, ASecondProcessIsRefused) {
  TemporaryDirectory directory;
  const std::string path = directory / "references";
  const auto first = must_open("file", path);
  Worker second({"file", path, "1", "1", "second"});
  EXPECT_EQ(WEXITSTATUS(second.wait()), 1);
}

}  // namespace
}  // namespace turnstile::testing
