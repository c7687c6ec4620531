// For LD_PRELOAD: CLOCK_BOOTTIME is as many seconds ahead as the file BOOT_CLOCK_AHEAD says, as on a machine that was
// suspended meanwhile. The other clocks, which stand still then, are as they are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, now);
  const char* path = getenv("BOOT_CLOCK_AHEAD");
  if (id != CLOCK_BOOTTIME || !path) return result;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return result;
  char text[32] = {0};
  if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
  close(file);
  return result;
}
