// See reserve.h.
#include "content/reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace turnstile::content {

void Reserve::keep() {
  if (kept_) return;
  struct statvfs disk{};
  struct stat file{};
  if (::stat(path_.c_str(), &file) == 0 && file.st_size == kBytes) {
    kept_ = true;
    return;
  }
  if (::statvfs(path_.substr(0, path_.rfind('/')).c_str(), &disk) != 0) return;
  if (int64_t(disk.f_bavail * disk.f_frsize) < 4 * kBytes) return;
  const UniqueFd made(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!made.is_open()) return;
  kept_ = ::posix_fallocate(made.get(), 0, kBytes) == 0;
  if (!kept_) (void)::unlink(path_.c_str());
}

bool Reserve::give_up() {
  kept_ = false;
  return ::unlink(path_.c_str()) == 0;
}

}  // namespace turnstile::content
