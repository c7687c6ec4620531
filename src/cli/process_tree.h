// Who descends from a process, as /proc tells it.
#pragma once

#include <sys/types.h>

#include <vector>

namespace turnstile::cli {

// Whether /proc is there and tells anything. Without it nobody has descendants.
bool sees_processes();

// Children, their children and so on, those that have ended but were not reaped left out. A process whose
// parent has died is a child of the nearest subreaper above; so below a subreaper nobody escapes.
std::vector<pid_t> descendants_of(pid_t pid);

// Those of them in this process group.
std::vector<pid_t> members_of(pid_t group, const std::vector<pid_t>& pids);

}  // namespace turnstile::cli
