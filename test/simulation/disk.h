// The simulated disk as a server sees it: its calls take time, in which other things happen, and once the
// power is gone nothing that is done with the files that were open reaches it any more.
#pragma once

#include <functional>
#include <memory>

#include "journal/simulated_disk.h"
#include "schedule.h"

namespace turnstile::sim {

// What the machine's disk is like now.
struct DiskWeather {
  Duration longest_sync{std::chrono::milliseconds(3)};
  bool next_sync_fails = false;  // once; nobody knows then what is on the disk
  bool quiet = true;             // nothing else happens meanwhile: the server is being started
  uint64_t life = 0;             // directories of another one are dead
};

// `disk` and `weather` outlive it.
std::unique_ptr<Directory> mount(testing::SimulatedDisk& disk, DiskWeather& weather, Schedule& schedule);

}  // namespace turnstile::sim
