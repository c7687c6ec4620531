// See command_progress.h.
#include "content/command_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace turnstile::content {

std::string show_bytes(int64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double number = double(bytes) / 1024;
  size_t unit = 0;
  for (; number >= 1024 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  return fmt::format("{:.1f} {}", number, kUnits[unit]);
}

CommandProgress::CommandProgress(std::string what, size_t blobs, int64_t bytes)
    : what_(std::move(what)), blobs_(blobs), bytes_(bytes), shown_(::isatty(STDERR_FILENO) == 1) {}

void CommandProgress::read(size_t bytes) {
  using namespace std::chrono_literals;
  bytes_done_ += int64_t(bytes);
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || now < next_) return;
  next_ = now + 200ms;
  fmt::print(stderr, "\r\033[K{}: {} of {} blobs, {} of {}", what_, blobs_done_, blobs_,
             show_bytes(bytes_done_), show_bytes(bytes_));
  std::fflush(stderr);
}

void CommandProgress::say(const std::string& line) {
  clear();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void CommandProgress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

int command_failed(const std::string& message) {
  fmt::print(stderr, "turnstile-content: {}\n", message);
  return 1;
}

}  // namespace turnstile::content
