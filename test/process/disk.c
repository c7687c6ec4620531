// For LD_PRELOAD: the disk and the sockets as the server uses them, watched, and made to fail by the test.
//
//   DISK_TRACE=FILE        a line for each call: "w" before a write to the log, "s" after a sync of it, "f" after one that
//                          was made to fail, "a W S" before anything is sent on a socket: so many writes had begun, and
//                          so many of them had been followed by a sync that has ended well.
//   DISK_FAILS=CALL:ERROR:N  CALL (pwrite or sync) fails with ERROR (ENOSPC or EIO) from the Nth time on
//   DISK_FAILS_ONCE=FILE   while there is this file the next sync of the log removes it and fails with EIO; later ones do
//                          what they should
//   DISK_STUCK_WHILE=FILE  no sync of the log ends while there is this file
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_long written, synced, calls;

static void trace(const char* line, size_t size) {
  static atomic_int file = -2;
  if (file == -2) {
    const char* path = getenv("DISK_TRACE");
    file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  }
  if (file >= 0 && write(file, line, size) < 0) abort();
}

// Whether it is one of the journal's log files.
static int is_log(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return 0;
  path[size] = 0;
  const char* name = strrchr(path, '/');
  return name && strncmp(name, "/log-", 5) == 0;
}

static int fails(const char* call) {
  const char* wanted = getenv("DISK_FAILS");
  const size_t size = strlen(call);
  if (!wanted || strncmp(wanted, call, size) != 0 || wanted[size] != ':') return 0;
  const char* when = strrchr(wanted, ':') + 1;
  if (atomic_fetch_add(&calls, 1) + 1 < atoi(when)) return 0;
  errno = strstr(wanted, "ENOSPC") ? ENOSPC : EIO;
  return 1;
}

static int fails_once(void) {
  const char* mark = getenv("DISK_FAILS_ONCE");
  if (!mark || unlink(mark) != 0) return 0;
  errno = EIO;
  return 1;
}

static ssize_t watched_pwrite(const char* name, int fd, const void* bytes, size_t size, off_t offset) {
  if (fails("pwrite")) return -1;
  if (is_log(fd)) {
    atomic_fetch_add(&written, 1);
    trace("w\n", 2);
  }
  ssize_t (*real)(int, const void*, size_t, off_t) = dlsym(RTLD_NEXT, name);
  return real(fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return watched_pwrite("pwrite", fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t offset) {
  return watched_pwrite("pwrite64", fd, bytes, size, offset);
}

static int watched_sync(const char* name, int fd) {
  if (fails("sync")) return -1;
  int (*real)(int) = dlsym(RTLD_NEXT, name);
  if (!is_log(fd)) return real(fd);
  const char* stuck = getenv("DISK_STUCK_WHILE");
  while (stuck && access(stuck, F_OK) == 0) usleep(10000);
  if (fails_once()) {
    trace("f\n", 2);
    errno = EIO;
    return -1;
  }
  const long before = written;  // one commit thread writes and syncs; what another began meanwhile is not covered
  if (real(fd) != 0) return -1;
  synced = before;
  trace("s\n", 2);
  return 0;
}

int fdatasync(int fd) { return watched_sync("fdatasync", fd); }

int fsync(int fd) { return watched_sync("fsync", fd); }

static void trace_send(void) {
  char line[64];
  const long begun = written;  // first this, so that what happens between the two cannot look like a gap
  const long safe = synced;
  const int size = snprintf(line, sizeof line, "a %ld %ld\n", begun, safe);
  trace(line, (size_t)size);
}

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  trace_send();
  ssize_t (*real)(int, const void*, size_t, int) = dlsym(RTLD_NEXT, "send");
  return real(fd, bytes, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  trace_send();
  ssize_t (*real)(int, const struct msghdr*, int) = dlsym(RTLD_NEXT, "sendmsg");
  return real(fd, message, flags);
}
