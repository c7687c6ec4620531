#include "cli/exec_start.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "cli/signals.h"

namespace turnstile::cli {
namespace {

void set_environment(const std::string& block) {
  for (size_t begin = 0; begin < block.size();) {
    const std::string entry(block.c_str() + begin);
    begin += entry.size() + 1;
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
  }
}

// In the child; returns only if the command cannot be run.
void become(const CommandStart& start, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  // SIGTTOU is still ignored here, or this would stop us.
  if (start.foreground) tcsetpgrp(STDIN_FILENO, getpid());
  for (const int number : kOurSignals) signal(number, SIG_DFL);
  for (const int number : start.ignored) signal(number, SIG_IGN);
  sigprocmask(SIG_SETMASK, &start.mask, nullptr);
  set_environment(start.environment);
  std::vector<char*> argv;
  for (const std::string& word : start.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
}

}  // namespace

std::expected<pid_t, int> start_command(const CommandStart& start) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::unexpected(errno);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return std::unexpected(errno);
  if (pid == 0) {
    become(start, parent);
    const int why = errno;
    (void)!write(writing.get(), &why, sizeof why);
    _exit(127);
  }
  setpgid(pid, pid);  // also here: whichever of the two is first, the group is there when we go on
  writing = UniqueFd();
  int why = 0;
  // Ends empty when exec has closed the other end.
  if (read(reading.get(), &why, sizeof why) != ssize_t(sizeof why)) return pid;
  waitpid(pid, nullptr, 0);
  return std::unexpected(why);
}

}  // namespace turnstile::cli
