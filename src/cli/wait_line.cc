#include "cli/wait_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/standard_streams.h"
#include "cli/json.h"

namespace turnstile::cli {
namespace {

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

std::string waiting_text(const std::string& lane, const WaitingStatus& status, WallTime now,
                         Milliseconds waited) {
  std::string text = fmt::format("waiting for {}: position {}", lane, status.position);
  if (!status.holder.empty()) {
    text += fmt::format(", held by {} for {}", one_line(status.holder), show_age(status.holder_since, now));
  }
  if (const std::string progress = show_progress(status.done, status.total); !progress.empty()) {
    text += ", " + progress;
  }
  if (waited.count() >= 1'000) text += "; " + show_duration(waited);
  return text;
}

WaitLine::WaitLine(Output output, const std::string& lane, bool quiet)
    : output_(output),
      lane_(one_line(lane)),
      quiet_(quiet),
      live_(!quiet && output == Output::text && isatty(STDERR_FILENO) == 1) {
  if (!live_) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    const Locked lock(mutex_);
    while (!stop.stop_requested()) {
      draw();
      changed_.wait_for(mutex_, stop, std::chrono::seconds(1), [] { return false; });
    }
  });
}

WaitLine::~WaitLine() { erase(); }

Milliseconds WaitLine::waited() const {
  return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - began_);
}

void WaitLine::draw() {
  if (!status_) return;
  const std::string text = waiting_text(lane_, *status_, wall_now(), waited());
  print_error("\r\033[K{}", shortened(text, terminal_width() - 1));
}

void WaitLine::erase() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  const Locked lock(mutex_);
  if (status_) print_error("\r\033[K");
}

void WaitLine::update(const WaitingStatus& status) {
  const Locked lock(mutex_);
  const bool first = !status_;
  status_ = status;
  if (live_) return draw();
  if (!first || quiet_) return;
  if (output_ == Output::json) {
    boost::json::object out = to_json(status);
    out["state"] = "waiting";
    print_error("{}\n", json_text(out));
  } else {
    print_error("turnstile: {}\n", waiting_text(lane_, status, wall_now(), waited()));
  }
}

void WaitLine::end(const std::string& outcome) {
  erase();
  const Locked lock(mutex_);
  if (!status_ || live_ || quiet_) return;
  if (output_ == Output::json) {
    const boost::json::object out{{"state", outcome}, {"waited_ms", waited().count()}};
    print_error("{}\n", json_text(out));
  } else {
    std::string words = outcome;
    std::ranges::replace(words, '_', ' ');
    print_error("turnstile: {} after {}\n", words, show_duration(waited()));
  }
}

}  // namespace turnstile::cli
