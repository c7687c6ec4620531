// See identity.h.
#include "content/identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/hash.h"

namespace turnstile::content {

Identity identity_of(const std::string& state) {
  char host[256] = {};
  (void)::gethostname(host, sizeof host - 1);
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  const std::string path = std::filesystem::weakly_canonical(state);
  return {fmt::format("{:.100}/{}/{:016x}", host, boot, xxh3_64(path)),
          fmt::format("the machine {} (state in {})", host, path).substr(0, 200)};
}

}  // namespace turnstile::content
