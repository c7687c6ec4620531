// top: the live table. What is drawn is top_frame's; here are the terminal, the keys and the rhythm.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <utility>

#include "base/standard_streams.h"
#include "base/sync.h"
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
    return {.width = window.ws_col, .height = std::max<size_t>(window.ws_row, 1)};
  }
  bool has_keys() const { return has_keys_; }
  void show(const std::string& frame) const {
    std::string out = "\033[H";
    for (const char c : frame) {
      if (c == '\n') out += "\033[K";
      out += c;
    }
    write(out + "\033[K\033[J");
  }

 private:
  static void write(const std::string& text) {
    print_output("{}", text);
    flush_output();
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

// Looks at the server again and again on a thread of its own, so that keys, signals and a new size of the
// window are heard however long an answer takes. Threads: one of its own; the members may be called by any.
class Looking {
 public:
  struct Sights {
    std::optional<TopSight> now, before;
    std::optional<ClientError> error;  // of the last look
  };

  // `over` ends the calls of the core.
  Looking(LockClient::Core& core, LockClient& client, std::stop_source& over)
      : over_(over), changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::jthread([this, &core, &client] {
      do {
        put(look(core, client));
      } while (core.timing().sleep_until(LockClient::Clock::now() + kRefresh, over_.get_token()));
    });
  }
  ~Looking() { over_.request_stop(); }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

  int fd() const { return changed_.get(); }  // readable: there is something new
  Sights sights() {
    uint64_t count;
    (void)!read(fd(), &count, sizeof count);
    const Locked lock(mutex_);
    return sights_;
  }

 private:
  void put(Expected<TopSight> sight) {
    const Locked lock(mutex_);
    if (sight) {
      sights_.before = std::exchange(sights_.now, std::move(*sight));
      sights_.error.reset();
    } else {
      sights_.error = sight.error();
    }
    const uint64_t one = 1;
    (void)!write(fd(), &one, sizeof one);
  }

  std::stop_source& over_;
  UniqueFd changed_;
  Mutex mutex_;
  Sights sights_ TS_GUARDED_BY(mutex_);
  std::jthread thread_;
};

void draw(const Screen& screen, const Looking::Sights& sights, TopOrder order) {
  const TopSize size = screen.size();
  if (sights.error) return screen.show(std::string(front_of(one_line(sights.error->message), size.width)));
  if (sights.now) {
    screen.show(top_frame(*sights.now, sights.before ? &*sights.before : nullptr, size, order));
  }
}

// A server that restarts is waited for; what trying again does not mend, and none at all, ends it.
Expected<void> show_live(LockClient::Core& core, LockClient& client, const Signals& signals,
                         std::stop_source& over) {
  const Screen screen;
  Looking looking(core, client, over);
  TopOrder order = TopOrder::waiting;
  for (;;) {
    std::array<pollfd, 3> wanted = {
        pollfd{.fd = signals.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = looking.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = screen.has_keys() ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    poll(wanted.data(), wanted.size(), -1);
    const std::optional<int> signal = signals.next(Milliseconds(0));
    if (signal && *signal != SIGWINCH) return {};
    if (wanted[2].revents != 0) {
      char key = 0;
      if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q') return {};
      order = order_of(key).value_or(order);
    }
    const Looking::Sights sights = looking.sights();
    if (sights.error && (!sights.now || sights.error->code != ErrorCode::unavailable)) {
      return std::unexpected(*sights.error);
    }
    draw(screen, sights, order);
  }
}

boost::json::object sight_json(const TopSight& sight) {
  boost::json::object out{{"server", sight.server.server}, {"version", sight.server.version}};
  if (!sight.server.hidden) {
    out["held"] = uint64_t(sight.server.metrics.sum("turnstile_locks_held"));
    out["waiting"] = uint64_t(sight.server.metrics.sum("turnstile_waiters"));
  }
  boost::json::array lanes;
  for (const LaneStatus& lane : sight.lanes) lanes.push_back(to_json(lane));
  out["locks"] = std::move(lanes);
  return out;
}

int top_live(const Context& context) {
  const Signals signals({SIGINT, SIGTERM, SIGHUP, SIGWINCH});
  std::stop_source over;
  const auto core = make_core(context, over.get_token());
  if (!core) return context.fail(core.error());
  LockClient client(*core);
  const Expected<void> shown = show_live(**core, client, signals, over);
  return shown ? int(kOk) : context.fail(shown.error());
}

int top(const Context& context, const TopOptions& options) {
  if (!options.once && !context.json() && isatty(STDOUT_FILENO) == 1) return top_live(context);
  const auto core = make_core(context);
  if (!core) return context.fail(core.error());
  LockClient client(*core);
  const Expected<TopSight> sight = look(**core, client);
  if (!sight) return context.fail(sight.error());
  if (context.json()) {
    print_json(sight_json(*sight));
  } else {
    print_output("{}\n", top_frame(*sight, nullptr, {.width = 200, .height = 50}));
  }
  return kOk;
}

}  // namespace

void add_top_command(Command& program, Context& context) {
  auto options = std::make_shared<TopOptions>();
  Command command =
      program.command("top", "A live table of what is held and waited for; q ends it, w, a, r and h sort it.",
                      "  turnstile top\n"
                      "  turnstile top --once\n"
                      "Keys: q ends it; w, a, r, h sort by how many wait, by age, resource or holder.\n");
  command.flag("--once", options->once, "print one picture and end (as without a terminal)");
  command.runs(context, options, top);
}

}  // namespace turnstile::cli
