#include "cli/process_tree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unordered_map>

namespace turnstile::cli {
namespace {

struct Process {
  bool ended = true;
  pid_t parent = 0;
};

// State and parent stand behind the name, which stands in brackets and may hold any character. One that is
// not there any more has ended.
Process look_at(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return {};
  std::istringstream rest(line.substr(bracket + 1));
  char state = 'X';
  Process found;
  rest >> state >> found.parent;
  found.ended = state == 'Z' || state == 'X';
  return found;
}

// By parent. For kernels that are built without the lists of children: many times the work of those.
using Children = std::unordered_multimap<pid_t, pid_t>;
Children everybody() {
  Children found;
  std::error_code gone;
  std::filesystem::directory_iterator entry("/proc", gone);
  for (; !gone && entry != std::filesystem::directory_iterator(); entry.increment(gone)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = pid_t(std::strtol(name.c_str(), nullptr, 10));
    if (const Process process = look_at(pid); !process.ended) found.emplace(process.parent, pid);
  }
  return found;
}

bool lists_children() {
  return std::ifstream(fmt::format("/proc/{0}/task/{0}/children", getpid())).is_open();
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

bool sees_processes() {
  const Process self = look_at(getpid());
  return !self.ended && self.parent == getppid();  // else it tells of another namespace's processes
}

std::vector<pid_t> descendants_of(pid_t pid) {
  const bool listed = lists_children();
  const Children all = listed ? Children() : everybody();
  std::vector<pid_t> found, open = {pid};
  const auto take = [&](pid_t child) {
    found.push_back(child);
    open.push_back(child);
  };
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    if (listed) {
      for (const pid_t child : children_of(parent))
        if (!look_at(child).ended) take(child);
    } else {
      const auto [first, last] = all.equal_range(parent);
      for (auto each = first; each != last; ++each) take(each->second);
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
