// Each of the engine's deliberate defects must be found by histories with known seeds: a ring that lets one
// pass has a hole.
//
// A defect may make the engine abort, which counts as found, or go round in circles, which does not; so each
// is looked for in a process of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "history.h"
#include "plants.h"

namespace turnstile {

// For GoogleTest, and so for the names that ctest shows.
void PrintTo(Plant plant, std::ostream* out) {
  for (const PlantText& text : kPlants)
    if (text.plant == plant) *out << text.name;
}

namespace model {
namespace {

constexpr uint64_t kMost = 10'000;
constexpr rlim_t kMostSeconds = 120;  // of CPU: only for one that never ends

struct Search {
  bool found = false;
  uint64_t histories = 0;
  std::string how;
};

// In the child: `histories` is the parent's, too.
[[noreturn]] void search(Plant plant, uint64_t most, volatile uint64_t& histories) {
  const rlimit no_core{0, 0}, cpu{kMostSeconds, kMostSeconds};
  setrlimit(RLIMIT_CORE, &no_core);
  setrlimit(RLIMIT_CPU, &cpu);
  if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);  // an engine that aborts says why
  the_plant = plant;
  while (histories < most) {
    histories = histories + 1;
    if (!run(make_history(histories, 40)).mismatch.empty()) _exit(1);
  }
  _exit(0);
}

Search look_for(Plant plant, uint64_t most) {
  void* shared = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {.how = "there is no memory to share"};
  auto& histories = *static_cast<volatile uint64_t*>(shared);
  histories = 0;
  const pid_t child = fork();
  if (child == 0) search(plant, most, histories);
  int status = 0;
  Search result;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    result.how = "there is no process to look in";
  } else if (WIFSIGNALED(status)) {
    // Only an assertion has found something: any other signal is the test's own fault, or the machine's.
    result = {WTERMSIG(status) == SIGABRT, histories, fmt::format("ended by signal {}", WTERMSIG(status))};
  } else {
    const bool found = WEXITSTATUS(status) == 1;
    result = {found, histories, found ? "engine and model disagree" : "engine and model agree"};
  }
  munmap(shared, sizeof(uint64_t));
  return result;
}

class PlantedBugs : public testing::TestWithParam<Plant> {};

TEST_P(PlantedBugs, IsFoundByTheModel) {
  const Search result = look_for(GetParam(), kMost);
  ASSERT_TRUE(result.found) << "not in " << result.histories << " histories; " << result.how;
  fmt::print("after {} histories: {}\n", result.histories, result.how);
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedBugs, testing::ValuesIn(kModelPlants),
                         [](const auto& tested) { return testing::PrintToString(tested.param); });

// Else everything above would be found in an engine without a defect.
TEST(NoPlantedBug, NothingIsFound) {
  const Search result = look_for(Plant::none, 2000);
  EXPECT_FALSE(result.found) << result.how;
  EXPECT_EQ(result.histories, 2000u);
}

}  // namespace
}  // namespace model
}  // namespace turnstile
