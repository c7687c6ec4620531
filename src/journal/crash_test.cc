// A crash at every single call to the disk, by many coins: the recovered world is one between what was
// acknowledged and what was issued, never a mixture, and a crash while recovering changes nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "journal/journal_test_support.h"

namespace turnstile::testing {
namespace {

constexpr uint64_t kSteps = 40;

struct Life {
  uint64_t acknowledged = 0;
  uint64_t issued = 0;
};

// Steps with two snapshots among them, and one while each is taken, until the end or until the disk gives up.
Life run_script(SimulatedDisk& disk) {
  Life life;
  DrivenJournal journal(disk, small_options());
  if (!journal.recover()) return life;
  journal.start();
  const auto commit_next = [&] {
    if (!journal.commit(++life.issued)) return false;
    life.acknowledged = life.issued;
    return true;
  };
  while (life.issued < kSteps && commit_next()) {
    if (life.issued != 15 && life.issued != 30) continue;
    (void)journal->snapshot([&](const Journal::Write& write) {
      world_after(life.issued).dump(write);
      commit_next();
    });
  }
  return life;
}

Result<World> recover_world(SimulatedDisk& disk) {
  DrivenJournal journal(disk, small_options());
  return journal.recover();
}

void expect_sound(SimulatedDisk& disk, const Life& life, const std::string& where) {
  const auto world = recover_world(disk);
  ASSERT_TRUE(world) << where << ": " << world.error().message;
  const uint64_t steps = (*world)["last"];
  EXPECT_GE(steps, life.acknowledged) << where;
  EXPECT_LE(steps, life.issued) << where;
  EXPECT_EQ(*world, world_after(steps)) << where;
}

uint64_t calls_of_script() {
  SimulatedDisk disk;
  EXPECT_EQ(run_script(disk).acknowledged, kSteps);
  return disk.calls();
}

TEST(Crash, S31_AtEveryCallToTheDiskRecoversWhatWasAcknowledged) {
  const uint64_t calls = calls_of_script();
  for (uint64_t at_call = 0; at_call <= calls; ++at_call) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      SimulatedDisk disk;
      disk.set_fault([=](DiskCall, const std::string&, uint64_t index) { return index >= at_call; });
      const Life life = run_script(disk);
      disk.crash(seed * 1000 + at_call);
      expect_sound(disk, life, fmt::format("call {} seed {}", at_call, seed));
    }
  }
}

TEST(Crash, S31_DuringRecoveryChangesNothing) {
  const uint64_t calls = calls_of_script();
  for (uint64_t at_call = 3; at_call <= calls; at_call += 3) {
    for (uint64_t in_recovery = 0; in_recovery < 8; ++in_recovery) {
      SimulatedDisk disk;
      disk.set_fault([=](DiskCall, const std::string&, uint64_t index) { return index >= at_call; });
      const Life life = run_script(disk);
      disk.crash(at_call);
      const uint64_t before = disk.calls();
      disk.set_fault(
          [=](DiskCall, const std::string&, uint64_t index) { return index >= before + in_recovery; });
      (void)recover_world(disk);
      disk.crash(at_call * 100 + in_recovery);
      expect_sound(disk, life, fmt::format("call {} and call {} of recovery", at_call, in_recovery));
    }
  }
}

// What a recovery has told of must still be there after the next crash, whatever was or was not synced
// before.
TEST(Crash, S31_AfterRecoveryLosesNothingThatWasRecovered) {
  const uint64_t calls = calls_of_script();
  for (uint64_t at_call = 3; at_call <= calls; ++at_call) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      SimulatedDisk disk;
      disk.set_fault([=](DiskCall, const std::string&, uint64_t index) { return index >= at_call; });
      run_script(disk);
      disk.set_fault(nullptr);  // only the process has died: the cache is still there
      const auto told = recover_world(disk);
      ASSERT_TRUE(told) << at_call << ": " << told.error().message;
      disk.crash(seed * 1000 + at_call);
      const auto found = recover_world(disk);
      ASSERT_TRUE(found) << at_call << ": " << found.error().message;
      EXPECT_EQ(*found, *told) << at_call;
    }
  }
}

}  // namespace
}  // namespace turnstile::testing
