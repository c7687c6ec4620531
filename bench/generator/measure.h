// What the load generator measures: time, latencies, and the CPU and memory of client and server.
//
// Server figures come from /proc, so they cover every thread and need no help from the server.
#pragma once

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

inline uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

// CPU and memory of the server's processes (several for a cluster). No process given: all zero.
class ServerProbe {
 public:
  explicit ServerProbe(std::vector<int> pids) : pids_(std::move(pids)) {}

  double cpu_seconds() const {
    double ticks = 0;
    for (int pid : pids_) {
      std::string stat = read_proc(pid, "stat");
      // The second field is the program's name in parentheses and may hold spaces: skip past it.
      unsigned long user = 0, system = 0;
      std::sscanf(stat.c_str() + stat.rfind(')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                  &user, &system);
      ticks += double(user + system);
    }
    return ticks / double(sysconf(_SC_CLK_TCK));
  }

  long rss_kb() const {
    long total = 0;
    for (int pid : pids_) {
      std::string status = read_proc(pid, "status");
      size_t at = status.find("VmRSS:");
      if (at != std::string::npos) total += std::stol(status.substr(at + 6));
    }
    return total;
  }

 private:
  static std::string read_proc(int pid, const char* file) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/" + file);
    if (!in) throw std::runtime_error("no server process " + std::to_string(pid));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::vector<int> pids_;
};

// One instant of the measured time; the difference of two is the cost of what lies between.
struct Snapshot {
  uint64_t time_ns = 0;
  double client_cpu_s = 0;
  double server_cpu_s = 0;

  static Snapshot take(const ServerProbe& server) {
    rusage own{};
    getrusage(RUSAGE_SELF, &own);
    auto seconds = [](timeval t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
    return {now_ns(), seconds(own.ru_utime) + seconds(own.ru_stime), server.cpu_seconds()};
  }
};

// Every latency of the measured time, in microseconds.
class Latencies {
 public:
  void add(uint64_t nanoseconds) {
    samples_.push_back(uint32_t(std::min<uint64_t>(nanoseconds / 1000, UINT32_MAX)));
  }
  size_t count() const { return samples_.size(); }

  // The smallest sample that at least `share` of all samples do not exceed; 0 without samples.
  uint32_t quantile(double share) {
    if (samples_.empty()) return 0;
    size_t rank = std::min(samples_.size() - 1, size_t(share * double(samples_.size())));
    std::nth_element(samples_.begin(), samples_.begin() + long(rank), samples_.end());
    return samples_[rank];
  }

 private:
  std::vector<uint32_t> samples_;
};

// One line of JSON, built field by field.
class JsonLine {
 public:
  void text(const char* name, const std::string& value) { raw(name, '"' + value + '"'); }
  void number(const char* name, double value, int decimals = 0) {
    char digits[64];
    std::snprintf(digits, sizeof digits, "%.*f", decimals, value);
    raw(name, digits);
  }
  void print() const { std::printf("{%s}\n", fields_.c_str()); }

 private:
  void raw(const char* name, const std::string& value) {
    if (!fields_.empty()) fields_ += ',';
    fields_ += '"' + std::string(name) + "\":" + value;
  }
  std::string fields_;
};
