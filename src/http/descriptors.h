// How many connections fit into the process's file descriptors, with a reserve for its own files.
//
// A file of its own, because it is about the whole process: a server whose connections take the last
// descriptor cannot begin a new log file, and must stop.
#pragma once

#include <cstddef>

namespace turnstile::http {

// Kept free for what the process opens later: the journal's next files and snapshots, a timer, a library's.
inline constexpr size_t kReservedDescriptors = 64;

struct Descriptors {
  size_t limit = 0;  // the hard limit, which is now the soft one, too
  size_t open = 0;   // by now
};

// Raises the soft limit, which is often 1,024, to the hard one. Never fails: what cannot be raised stays.
Descriptors claim_descriptors();

// How a number of descriptors is shared by connections: those that are served, and those that are only told
// that they are too many.
struct Room {
  size_t served = 0;
  size_t refused = 0;
};
// As many as the settings want, or as fit. `served` is 0 when not even one does.
Room divide(Descriptors descriptors, size_t wanted);

}  // namespace turnstile::http
