#include "base/metrics_text.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "base/unique_fd.h"

namespace turnstile {
namespace {

using testing::HasSubstr;

double value_of(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + " ");
  return at == text.npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

std::string process_text() {
  std::string text = "\n";
  append_process_metrics(text);
  return text;
}

TEST(MetricsText, ANameHasItsTypeAndItsSeries) {
  std::string out;
  MetricsText text(out);
  text.gauge("size", "How large");
  text.value("part", "log", 12);
  text.value("part", "snapshot", 0.5);
  text.counter("cut_total", "How many");
  text.value(1e15);
  EXPECT_EQ(out,
            "# HELP size How large\n# TYPE size gauge\nsize{part=\"log\"} 12\nsize{part=\"snapshot\"} 0.5\n"
            "# HELP cut_total How many\n# TYPE cut_total counter\ncut_total 1000000000000000\n");
}

TEST(MetricsText, AProcessTellsOfItselfByTheUsualNames) {
  const std::string text = process_text();
  EXPECT_GT(value_of(text, "process_resident_memory_bytes"), 100'000);
  EXPECT_GT(value_of(text, "process_virtual_memory_bytes"), value_of(text, "process_resident_memory_bytes"));
  EXPECT_GE(value_of(text, "process_cpu_seconds_total"), 0);
  EXPECT_GE(value_of(text, "process_threads"), 1);
  EXPECT_GE(value_of(text, "process_max_fds"), value_of(text, "process_open_fds"));
  EXPECT_THAT(text, HasSubstr("# TYPE process_cpu_seconds_total counter"));
  // It began before now, and not before yesterday.
  EXPECT_LE(value_of(text, "process_start_time_seconds"), double(std::time(nullptr)) + 2);
  EXPECT_GT(value_of(text, "process_start_time_seconds"), double(std::time(nullptr)) - 86'400);
}

TEST(MetricsText, AnOpenedFileIsOneDescriptorMore) {
  const double before = value_of(process_text(), "process_open_fds");
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(value_of(process_text(), "process_open_fds"), before + 1);
}

}  // namespace
}  // namespace turnstile
