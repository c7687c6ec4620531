#include "plants.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/check.h"
#include "base/log.h"
#include "world.h"

namespace turnstile::sim {
namespace {

// Says after each history how many there have been.
[[noreturn]] void play_with(Plant plant, Plan (*make)(uint64_t), int told) {
  if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(2);  // assertions are what we hope for
  set_log(LogLevel::off, LogFormat::text);
  the_plant = plant;
  for (uint64_t seed = 1; seed <= kMostHistories; ++seed) {
    if (write(told, &seed, sizeof seed) != sizeof seed) _exit(2);
    if (!play(make(seed)).violations.empty()) _exit(0);
  }
  _exit(1);
}

}  // namespace

std::optional<uint64_t> histories_until_found(Plant plant, Plan (*make)(uint64_t)) {
  int ends[2];
  TS_CHECK(pipe(ends) == 0, "a pipe can be made");
  const pid_t child = fork();
  if (child == 0) play_with(plant, make, ends[1]);
  close(ends[1]);
  uint64_t histories = 0, next = 0;
  while (read(ends[0], &next, sizeof next) == sizeof next) histories = next;
  close(ends[0]);
  int status = 0;
  TS_CHECK(waitpid(child, &status, 0) == child, "a child can be waited for");
  const bool violation = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const bool assertion = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  if (violation || assertion) return histories;
  return std::nullopt;
}

}  // namespace turnstile::sim
