// Prometheus' text format for values that are read when somebody asks, and are kept nowhere else: no registry
// has to copy them first. Also what every process tells of itself under the names that all of Prometheus'
// clients use.
#pragma once

#include <string>
#include <string_view>

namespace turnstile {

// Appends series to a text. Threads: one.
class MetricsText {
 public:
  explicit MetricsText(std::string& out) : out_(out) {}

  // A name with its series, which follow. Each name once in a text.
  void gauge(std::string_view name, std::string_view help) { begin(name, help, "gauge"); }
  void counter(std::string_view name, std::string_view help) { begin(name, help, "counter"); }

  // `value` with the label `label`, or without one.
  void value(double value) { series({}, {}, value); }
  void value(std::string_view label, std::string_view of_label, double value) {
    series(label, of_label, value);
  }

 private:
  void begin(std::string_view name, std::string_view help, std::string_view type);
  void series(std::string_view label, std::string_view of_label, double value);

  std::string& out_;
  std::string name_;
};

// process_cpu_seconds_total, process_resident_memory_bytes and so on, of this process. What the system does
// not tell is left out.
void append_process_metrics(std::string& out);

}  // namespace turnstile
