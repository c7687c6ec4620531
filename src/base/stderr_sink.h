// Where the lines of the log go: to stderr, for whose reader nobody waits.
//
// Apart from log.cc because that is about what a line looks like.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace turnstile {

// A reader that has stopped (a service manager that restarts, a paused terminal) must not stop those who log:
// they are the threads that serve. Lines that it has no room for are dropped, and the next one that it has
// room for says how many.
//
// Threads: any. They wait for each other, and for the reader a tenth of a second, once until it reads again.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  using SayLost = std::string (*)(uint64_t lines);
  explicit StderrSink(SayLost say_lost) : say_lost_(say_lost) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  bool put(const spdlog::details::log_msg& message);
  bool write_all(std::string_view bytes);

  const SayLost say_lost_;
  bool stuck_ = false;  // the reader has been waited for
  bool torn_ = false;   // the last line is not whole
  uint64_t lost_ = 0;   // lines
};

}  // namespace turnstile
