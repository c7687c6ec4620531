// Descendants, with real processes.
#include "cli/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace turnstile::cli {
namespace {

TEST(ProcessTree, GrandchildrenAreFoundAndTheDeadAreNot) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    if (fork() == 0) {
      setpgid(0, 0);  // left its parent's group
      (void)!write(ready[1], "x", 1);
      for (;;) pause();
    }
    for (;;) pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const std::vector<pid_t> found = descendants_of(getpid());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], child);
  EXPECT_EQ(members_of(child, found), std::vector<pid_t>{child});
  for (const pid_t pid : found) kill(pid, SIGKILL);
  siginfo_t info;
  waitid(P_PID, id_t(child), &info, WEXITED | WNOWAIT);  // it has ended, and is still there
  EXPECT_TRUE(descendants_of(getpid()).empty());
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace turnstile::cli
