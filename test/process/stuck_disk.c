// For LD_PRELOAD: fdatasync does not return while a file named by STUCK_WHILE exists. A disk that stands still, begun and
// ended by the test.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int fdatasync(int fd) {
  const char* mark = getenv("STUCK_WHILE");
  while (mark && access(mark, F_OK) == 0) usleep(10000);
  int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
  return real(fd);
}
