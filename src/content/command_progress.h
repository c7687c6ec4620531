// What the commands print while they work, and how they end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace turnstile::content {

// "1.5 GiB"
std::string show_bytes(int64_t bytes);

// One line to stderr, which is written over; only on a terminal.
class CommandProgress {
 public:
  CommandProgress(std::string what, size_t blobs, int64_t bytes);
  ~CommandProgress() { clear(); }
  CommandProgress(const CommandProgress&) = delete;
  CommandProgress& operator=(const CommandProgress&) = delete;

  void blob_done() { ++blobs_done_; }
  void read(size_t bytes);
  // A line that stays.
  void say(const std::string& line);

 private:
  void clear();

  const std::string what_;
  const size_t blobs_;
  const int64_t bytes_;
  const bool shown_;
  size_t blobs_done_ = 0;
  int64_t bytes_done_ = 0;
  std::chrono::steady_clock::time_point next_{};
};

// To stderr, with the program's name before it.
int command_failed(const std::string& message);

}  // namespace turnstile::content
