#include "base/metrics_text.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace turnstile {
namespace {

// What /proc/self/stat has behind the program's name, which may have spaces in it; the first is field 3.
struct ProcessStat {
  double cpu_seconds = 0, start_after_boot = 0, threads = 0, virtual_bytes = 0, resident_bytes = 0;
};

std::optional<std::string> read_all(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return std::nullopt;
  return text.str();
}

std::optional<ProcessStat> read_stat() {
  const std::optional<std::string> text = read_all("/proc/self/stat");
  const size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(name_end + 1));
  std::array<std::string, 22> field;  // 3 (state) to 24 (rss)
  for (std::string& each : field)
    if (!(fields >> each)) return std::nullopt;
  const auto number = [&](size_t index) { return std::strtod(field[index - 3].c_str(), nullptr); };
  const double ticks = double(::sysconf(_SC_CLK_TCK));
  return ProcessStat{.cpu_seconds = (number(14) + number(15)) / ticks,
                     .start_after_boot = number(22) / ticks,
                     .threads = number(20),
                     .virtual_bytes = number(23),
                     .resident_bytes = number(24) * double(::sysconf(_SC_PAGESIZE))};
}

// Seconds since 1970.
std::optional<double> boot_time() {
  const std::optional<std::string> text = read_all("/proc/stat");
  const size_t at = text ? text->find("\nbtime ") : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  return std::strtod(text->c_str() + at + sizeof "\nbtime " - 1, nullptr);
}

// Since Linux 6.2 the directory's size is the count; before, its entries are counted.
std::optional<double> open_descriptors() {
  struct stat status;
  if (::stat("/proc/self/fd", &status) == 0 && status.st_size > 0) return double(status.st_size);
  std::error_code error;
  double count = -1;  // the one that lists them
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error))
    ++count;
  if (error) return std::nullopt;
  return count;
}

}  // namespace

void MetricsText::begin(std::string_view name, std::string_view help, std::string_view type) {
  name_ = name;
  fmt::format_to(std::back_inserter(out_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsText::series(std::string_view label, std::string_view of_label, double value) {
  const auto out = std::back_inserter(out_);
  if (label.empty())
    fmt::format_to(out, "{} {}\n", name_, value);
  else
    fmt::format_to(out, "{}{{{}=\"{}\"}} {}\n", name_, label, of_label, value);
}

void append_process_metrics(std::string& out) {
  MetricsText text(out);
  const auto gauge = [&](std::string_view name, std::string_view help, std::optional<double> value) {
    if (!value) return;
    text.gauge(name, help);
    text.value(*value);
  };
  if (const std::optional<ProcessStat> stat = read_stat()) {
    text.counter("process_cpu_seconds_total",
                 "Processor time of this process, the kernel's share for it too");
    text.value(stat->cpu_seconds);
    gauge("process_resident_memory_bytes", "Memory of this process that is in RAM", stat->resident_bytes);
    gauge("process_virtual_memory_bytes", "Address space of this process", stat->virtual_bytes);
    gauge("process_threads", "Threads of this process", stat->threads);
    if (const std::optional<double> boot = boot_time())
      gauge("process_start_time_seconds", "When this process began, in seconds since 1970",
            *boot + stat->start_after_boot);
  }
  gauge("process_open_fds", "Open file descriptors, one a connection and a few more", open_descriptors());
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    gauge("process_max_fds", "How many there may be", double(limit.rlim_cur));
}

}  // namespace turnstile
