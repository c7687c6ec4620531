// For LD_PRELOAD where strace may not trace: SHIM_CALL (pwrite64 or fdatasync) fails with SHIM_ERROR (ENOSPC or EIO)
// from the SHIM_WHEN-th time on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static atomic_int calls;

static int fails(const char* call) {
  const char* wanted = getenv("SHIM_CALL");
  const char* error = getenv("SHIM_ERROR");
  const char* when = getenv("SHIM_WHEN");
  if (!wanted || !error || !when || strcmp(wanted, call) != 0) return 0;
  if (atomic_fetch_add(&calls, 1) + 1 < atoi(when)) return 0;
  errno = strcmp(error, "ENOSPC") == 0 ? ENOSPC : EIO;
  return 1;
}

static ssize_t checked_pwrite(const char* name, int fd, const void* bytes, size_t size, off_t offset) {
  if (fails("pwrite64")) return -1;
  ssize_t (*real)(int, const void*, size_t, off_t) = dlsym(RTLD_NEXT, name);
  return real(fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return checked_pwrite("pwrite", fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t offset) {
  return checked_pwrite("pwrite64", fd, bytes, size, offset);
}

int fdatasync(int fd) {
  if (fails("fdatasync")) return -1;
  int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
  return real(fd);
}
