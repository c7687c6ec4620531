// For LD_PRELOAD: the wall clock is CLOCK_BEHIND seconds behind, as on a machine whose battery is empty.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, now);
  const char* behind = getenv("CLOCK_BEHIND");
  if (id == CLOCK_REALTIME && behind) now->tv_sec -= atol(behind);
  return result;
}
