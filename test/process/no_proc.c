// For LD_PRELOAD: files below /proc whose path ends with NO_PROC are not there, as on a kernel that is built
// without them; with NO_PROC empty none is, as where /proc is not mounted.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hidden(const char* path) {
  const char* end = getenv("NO_PROC");
  if (!end || strncmp(path, "/proc", 5) != 0 || strlen(path) < strlen(end)) return 0;
  if (strcmp(path + strlen(path) - strlen(end), end) != 0) return 0;
  errno = ENOENT;
  return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

FILE* fopen(const char* path, const char* mode) { return hidden(path) ? NULL : REAL(fopen)(path, mode); }
FILE* fopen64(const char* path, const char* mode) { return hidden(path) ? NULL : REAL(fopen64)(path, mode); }
DIR* opendir(const char* path) { return hidden(path) ? NULL : REAL(opendir)(path); }

#define OPENER(name, before, given)                                         \
  int name(before const char* path, int flags, ...) {                       \
    va_list rest;                                                           \
    va_start(rest, flags);                                                  \
    const int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; \
    va_end(rest);                                                           \
    return hidden(path) ? -1 : REAL(name)(given path, flags, mode);         \
  }
#define NOTHING
#define DIRECTORY int directory,
#define THE_DIRECTORY directory,
OPENER(open, NOTHING, NOTHING)
OPENER(open64, NOTHING, NOTHING)
OPENER(openat, DIRECTORY, THE_DIRECTORY)
OPENER(openat64, DIRECTORY, THE_DIRECTORY)
