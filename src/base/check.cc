#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace turnstile {

void check_failed(const char* file, int line, const char* condition, std::string_view meaning) {
  std::fprintf(stderr, "turnstile: invariant broken at %s:%d: %.*s (%s). This is a bug; please report it.\n",
               file, line, int(meaning.size()), meaning.data(), condition);
  std::abort();
}

}  // namespace turnstile
