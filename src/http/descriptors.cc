#include "http/descriptors.h"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>

namespace turnstile::http {
namespace {

constexpr size_t kMostRefused = 256;
constexpr size_t kUsuallyOpen = 32;  // where there is no /proc to count them

size_t count_open() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), &::closedir);
  if (!directory) return kUsuallyOpen;
  size_t count = 0;
  while (const dirent* entry = ::readdir(directory.get())) count += entry->d_name[0] != '.';
  return count - std::min<size_t>(count, 1);  // the directory's own
}

}  // namespace

Descriptors claim_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {.limit = 1024, .open = count_open()};
  const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return {.limit = size_t(limit.rlim_cur), .open = count_open()};
}

Room divide(Descriptors descriptors, size_t wanted) {
  const size_t taken = descriptors.open + kReservedDescriptors;
  const size_t left = descriptors.limit - std::min(taken, descriptors.limit);
  if (left < 2) return {};
  const size_t refused = std::clamp<size_t>(left / 8, 1, kMostRefused);
  return {.served = std::min(wanted, left - refused), .refused = refused};
}

}  // namespace turnstile::http
