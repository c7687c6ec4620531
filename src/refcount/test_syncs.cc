// See test_syncs.h.
#include "refcount/test_syncs.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace turnstile::testing {

Syncs& syncs() {
  static Syncs the_syncs;
  return the_syncs;
}

namespace {

int sync_by(long call, int fd) {
  ++syncs().calls;
  if (syncs().until_failure >= 0 && syncs().until_failure-- == 0) {
    errno = EIO;
    return -1;
  }
  return int(::syscall(call, fd));
}

}  // namespace
}  // namespace turnstile::testing

extern "C" int fsync(int fd) { return turnstile::testing::sync_by(SYS_fsync, fd); }
extern "C" int fdatasync(int fd) { return turnstile::testing::sync_by(SYS_fdatasync, fd); }
