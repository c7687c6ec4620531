// A process of its own that adds references in parallel, for the tests that kill it or run several of it.
//
//   refcount_worker KIND PATH THREADS ADDS NAME
//
// Thread T pulls ADDS times, as the nodes NAME-T-0, NAME-T-1, …, each when the one before is acknowledged,
// and prints "T I" for each acknowledgement.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "refcount/test_support.h"

int main(int argc, char** argv) {
  using namespace turnstile;
  if (argc != 6) return 2;
  const std::string name = argv[5];
  const int threads = std::atoi(argv[3]), adds = std::atoi(argv[4]);
  auto storage = turnstile::testing::open_storage(argv[1], argv[2]);
  if (!storage) {
    std::fprintf(stderr, "%s\n", storage.error().message.c_str());
    return 1;
  }
  RefCountManager manager(std::move(*storage));
  const auto add_all = [&](int thread) {
    for (int i = 0; i < adds; ++i) {
      const std::string node = name + "-" + std::to_string(thread) + "-" + std::to_string(i);
      const auto added =
          manager.update_ref_count("pull", "r" + std::to_string(i % 3), node, WorkResult::succeeded());
      if (!added) {
        std::fprintf(stderr, "%s\n", added.error().message.c_str());
        std::_Exit(1);
      }
      const std::string line = std::to_string(thread) + " " + std::to_string(i) + "\n";
      // One write a line: a line is in the pipe whole or not at all when the process is killed.
      if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(1);
    }
  };
  std::vector<std::jthread> running;
  for (int thread = 0; thread < threads; ++thread) running.emplace_back(add_all, thread);
}
