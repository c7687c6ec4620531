// See test_syncs.h.
#include "refcount/test_syncs.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace turnstile::testing {

Syncs& syncs() {
  static Syncs the_syncs;
  return the_syncs;
}

namespace {

bool is_meant(int fd) {
  if (syncs().of.empty()) return true;
  char path[PATH_MAX];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return length > 0 && std::string_view(path, size_t(length)).find(syncs().of) != std::string_view::npos;
}

int sync_by(long call, int fd) {
  ++syncs().calls;
  if (syncs().until_failure >= 0 && is_meant(fd) && syncs().until_failure-- == 0) {
    errno = syncs().error;
    return -1;
  }
  return int(::syscall(call, fd));
}

}  // namespace
}  // namespace turnstile::testing

extern "C" int fsync(int fd) { return turnstile::testing::sync_by(SYS_fsync, fd); }
extern "C" int fdatasync(int fd) { return turnstile::testing::sync_by(SYS_fdatasync, fd); }
