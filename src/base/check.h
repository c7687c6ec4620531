// Invariants that are asserted always, in release builds too: a lock server that has lost one must stop,
// because going on would hand out what it does not have.
#pragma once

#include <string_view>

namespace turnstile {

// Says on stderr what does not hold and where, then aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view meaning);

}  // namespace turnstile

// `meaning` is the invariant in words, for whoever reads the last line of a log.
#define TS_CHECK(condition, meaning)                                      \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::turnstile::check_failed(__FILE__, __LINE__, #condition, meaning); \
  } while (false)
