// Guarded transactions against a real etcd: how many a second, and what each costs this process.
//
//   build/bench/etcd_bench [MEMBERS] [BYTES] [SECONDS]
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "etcd/test_etcd.h"

namespace {

using namespace turnstile;
using std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t members = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  const size_t bytes = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 150;
  const std::chrono::seconds length(argc > 3 ? std::atoi(argv[3]) : 5);
  turnstile::testing::TestEtcd etcd({.members = members});
  const auto client = etcd.connect();
  const auto term = client->commit({.guards = {{"t/leader", 0}}, .puts = {{"t/leader", "me"}}},
                                   turnstile::testing::kEventually);
  if (!term || !term->done) return 1;
  const std::string value(bytes, 'x');
  std::vector<double> took;
  const double cpu = cpu_seconds();
  const auto start = steady_clock::now();
  while (steady_clock::now() < start + length) {
    const auto sent = steady_clock::now();
    const auto answer = client->commit({.guards = {{"t/leader", term->revision}},
                                        .puts = {{fmt::format("t/log/{:016x}", took.size()), value}}},
                                       turnstile::testing::kEventually);
    if (!answer || !answer->done) return 1;
    took.push_back(std::chrono::duration<double, std::micro>(steady_clock::now() - sent).count());
  }
  const double seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
  const double each = (cpu_seconds() - cpu) * 1e6 / double(took.size());
  std::ranges::sort(took);
  std::printf(
      "%zu members, %zu bytes, one in flight: %.0f transactions/s, p50 %.0f us, p99 %.0f us, CPU %.0f us "
      "each\n",
      members, bytes, double(took.size()) / seconds, took[took.size() / 2], took[took.size() * 99 / 100],
      each);
}
