#include "cli/process_tree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace turnstile::cli {
namespace {

// The state letter stands behind the name, which stands in brackets and may hold any character.
bool has_ended(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const size_t bracket = line.rfind(')');
  if (bracket == std::string::npos || bracket + 2 >= line.size()) return true;
  return line[bracket + 2] == 'Z' || line[bracket + 2] == 'X';
}

// Each thread has children of its own.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> found;
  std::error_code gone;
  std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", pid), gone);
  for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> found, open = {pid};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (const pid_t child : children_of(parent)) {
      if (has_ended(child)) continue;
      found.push_back(child);
      open.push_back(child);
    }
  }
  return found;
}

std::vector<pid_t> members_of(pid_t group, const std::vector<pid_t>& pids) {
  std::vector<pid_t> members;
  for (const pid_t pid : pids) {
    if (getpgid(pid) == group) members.push_back(pid);
  }
  return members;
}

}  // namespace turnstile::cli
