// Where other threads, nodes and accidents may come in between. Test/lives lets them; elsewhere nothing of it
// is compiled.
#pragma once

namespace turnstile::content {

#ifdef TURNSTILE_PLANTS
// Set by the simulation. `where` is for its trace.
using Pause = void (*)(const char* where);
inline constinit Pause the_pause = nullptr;
inline void pause(const char* where) {
  if (the_pause != nullptr) the_pause(where);
}
// File systems without hard links, and threads that cannot wait for each other because there is only one.
inline constinit bool simulated_without_links = false;
constexpr bool kSimulated = true;
#else
constexpr void pause(const char*) {}
constexpr bool simulated_without_links = false;
constexpr bool kSimulated = false;
#endif

}  // namespace turnstile::content
