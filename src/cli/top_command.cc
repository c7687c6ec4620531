// top: the live table. What is drawn is top_frame's; here are the terminal, the keys and the rhythm.
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>

#include "cli/json.h"
#include "cli/program.h"
#include "cli/signals.h"
#include "cli/top_frame.h"
#include "client/core.h"

namespace turnstile::cli {
namespace {

constexpr size_t kMostLanes =
    5'000;  // of each state; more would take longer than the time between two pictures
constexpr Milliseconds kRefresh{1'000};

struct TopOptions {
  bool once = false;
};

// The alternate screen without echo and cursor; as it was before when destroyed.
class Screen {
 public:
  Screen() {
    has_keys_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
      termios raw = before_;
      raw.c_lflag &= ~tcflag_t(ICANON | ECHO);
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    write("\033[?1049h\033[?25l");
  }
  ~Screen() {
    write("\033[?25h\033[?1049l");
    if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  TopSize size() const {
    winsize window{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return {};
    return {.width = window.ws_col, .height = window.ws_row};
  }
  bool has_keys() const { return has_keys_; }
  void show(const std::string& frame) const {
    std::string out = "\033[H";
    for (const char c : frame) {
      if (c == '\n') out += "\033[K";
      out += c;
    }
    write(out + "\033[J");
  }

 private:
  static void write(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }
  termios before_{};
  bool has_keys_ = false;
};

Expected<TopSight> look(LockClient::Core& core, LockClient& client) {
  Expected<ServerSight> server = look_at_server(core.caller());
  if (!server) return std::unexpected(server.error());
  TopSight sight{.server = std::move(*server), .lanes = {}, .cut = false, .now = wall_now()};
  for (const char* state : {"held", "waiting"}) {
    LaneFilter filter{.prefix = {}, .operation = {}, .state = state, .limit = 1'000, .cursor = {}};
    size_t seen = 0;
    do {
      Expected<LanePage> page = client.list(filter);
      if (!page) return std::unexpected(page.error());
      seen += page->lanes.size();
      std::ranges::move(page->lanes, std::back_inserter(sight.lanes));
      filter.cursor = page->next_cursor;
    } while (!filter.cursor.empty() && seen < kMostLanes);
    sight.cut |= !filter.cursor.empty();
  }
  return sight;
}

// Until it is time for the next picture. True: the person wants to end.
bool wait_for_end(const Signals& signals, const Screen& screen) {
  const auto until = std::chrono::steady_clock::now() + kRefresh;
  for (;;) {
    const auto left = std::chrono::ceil<Milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> wanted = {
        pollfd{.fd = signals.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = screen.has_keys() ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    if (poll(wanted.data(), wanted.size(), int(left.count())) <= 0) continue;
    if (wanted[0].revents != 0) return true;
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q') return true;
  }
}

Expected<void> show_live(LockClient::Core& core, LockClient& client, const Signals& signals) {
  const Screen screen;
  std::optional<TopSight> before;
  for (;;) {
    Expected<TopSight> sight = look(core, client);
    // A server that restarts is waited for, with the last picture; what trying again does not mend ends it.
    if (!sight && (!before || sight.error().code != ErrorCode::unavailable))
      return std::unexpected(sight.error());
    if (sight) {
      screen.show(top_frame(*sight, before ? &*before : nullptr, screen.size()));
      before = std::move(*sight);
    } else {
      screen.show(one_line(sight.error().message) + "\n");
    }
    if (wait_for_end(signals, screen)) return {};
  }
}

boost::json::object sight_json(const TopSight& sight) {
  boost::json::object out{{"server", sight.server.server}, {"version", sight.server.version}};
  out["held"] = uint64_t(sight.server.metrics.sum("turnstile_locks_held"));
  out["waiting"] = uint64_t(sight.server.metrics.sum("turnstile_waiters"));
  boost::json::array lanes;
  for (const LaneStatus& lane : sight.lanes) lanes.push_back(to_json(lane));
  out["locks"] = std::move(lanes);
  return out;
}

int top(const Context& context, const TopOptions& options) {
  const auto core = make_core(context);
  if (!core) return context.fail(core.error());
  LockClient client(*core);
  if (!options.once && !context.json() && isatty(STDOUT_FILENO) == 1) {
    const Signals signals({SIGINT, SIGTERM, SIGHUP});
    const Expected<void> shown = show_live(**core, client, signals);
    return shown ? int(kOk) : context.fail(shown.error());
  }
  const Expected<TopSight> sight = look(**core, client);
  if (!sight) return context.fail(sight.error());
  if (context.json()) {
    print_json(sight_json(*sight));
  } else {
    fmt::print("{}", top_frame(*sight, nullptr, {.width = 200, .height = 50}));
  }
  return kOk;
}

}  // namespace

void add_top_command(Command& program, Context& context) {
  auto options = std::make_shared<TopOptions>();
  Command command = program.command("top", "A live table of what is held and waited for; q ends it.",
                                    "  turnstile top\n"
                                    "  turnstile top --once\n");
  command.flag("--once", options->once, "print one picture and end (as without a terminal)");
  command.runs(context, options, top);
}

}  // namespace turnstile::cli
