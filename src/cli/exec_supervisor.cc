#include "cli/exec_supervisor.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>

#include "cli/exec_start.h"
#include "cli/process_tree.h"

namespace turnstile::cli {
namespace {

constexpr std::chrono::seconds kTimeToEnd{2};       // for the rest of a group whose leader has ended
constexpr std::chrono::milliseconds kLookEvery{5};  // while waiting for processes to disappear
constexpr Steady::time_point kNever = Steady::time_point::max();

// For poll(2), whose time stands still while the machine is suspended: so that is looked for now and then.
int milliseconds_until(Steady::time_point time) {
  if (time == kNever) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Steady::now());
  return int(std::clamp<int64_t>(left.count(), 0, 250));
}

class Supervisor {
 public:
  Supervisor(const SupervisorSettings& settings, int channel, std::vector<int> ignored)
      : settings_(settings), channel_(channel), ignored_(std::move(ignored)), children_({SIGCHLD}) {}

  void run() {
    while (!reported_) {
      std::array<pollfd, 2> wanted = {pollfd{.fd = channel_, .events = POLLIN, .revents = 0},
                                      pollfd{.fd = children_.fd(), .events = POLLIN, .revents = 0}};
      poll(wanted.data(), wanted.size(), milliseconds_until(next_step()));
      if (wanted[0].revents != 0) obey();
      while (children_.next(std::chrono::milliseconds(0))) continue;
      reap();
      step(Steady::now());
    }
  }

 private:
  using Because = Notice::Because;

  void obey() {
    const std::optional<ReceivedOrder> received = receive_order(channel_);
    if (!received) end_everything();
    const Order& order = received->order;
    switch (order.kind) {
      case Order::Kind::start:
        return start(received->payload, order.foreground);
      case Order::Kind::deadline:
        // Once the command has been told to end, there is no going back.
        if (because_ == Because::itself) term_at_ = order.term_at, kill_at_ = order.kill_at;
        return;
      case Order::Kind::signal:
        return signal_group(order.signal);
      case Order::Kind::kill:
        because_ = Because::killed;
        kill_at_ = Steady::time_point::min();
    }
  }

  void start(const std::string& environment, bool foreground) {
    if (Steady::now() >= term_at_ || because_ != Because::itself) {
      if (because_ == Because::itself) because_ = Because::deadline;
      return report();  // too late to begin
    }
    const auto started = start_command({.command = settings_.command,
                                        .environment = environment,
                                        .mask = settings_.mask,
                                        .ignored = ignored_,
                                        .foreground = foreground});
    for (const int pipe : settings_.pipes) close(pipe);
    if (!started) {
      send_notice(channel_, {.kind = Notice::Kind::not_started, .value = started.error()});
      _exit(0);
    }
    leader_ = *started;
    send_notice(channel_, {.kind = Notice::Kind::started, .value = leader_});
  }

  // Of a group that has members; a stopped one must run to see it.
  void signal_group(int number) {
    if (leader_ == 0 || (leader_ended_ && !group_lives())) return;
    ::kill(-leader_, number);
    if (number != SIGKILL) ::kill(-leader_, SIGCONT);
  }

  // The kernel knows whether there is a group, also where there is no /proc. But it counts members that have
  // ended and that a parent outside of the group does not reap; only /proc tells those apart.
  bool group_lives() const {
    if (leader_ == 0 || (::kill(-leader_, 0) != 0 && errno == ESRCH)) return false;
    return !sees_processes() || !members_of(leader_, descendants_of(getpid())).empty();
  }
  bool anybody_lives() const { return group_lives() || !descendants_of(getpid()).empty(); }

  // Orphans of the command's become our children, and are taken here, too.
  void reap() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
      if (pid != leader_) continue;
      if (WIFSTOPPED(status)) {
        // Nobody could continue it: the shell knows only the CLI. And a hold is not for standing still.
        if (WSTOPSIG(status) == SIGTSTP) ::kill(-leader_, SIGCONT);
        if (WSTOPSIG(status) == SIGTTIN || WSTOPSIG(status) == SIGTTOU) {
          send_notice(channel_, {.kind = Notice::Kind::stopped});
        }
        continue;
      }
      leader_ended_ = true;
      status_ = status;
      rest_until_ = Steady::now() + kTimeToEnd;
    }
  }

  Steady::time_point next_step() const {
    if (leader_ == 0) return kNever;
    if (leader_ended_ || Steady::now() >= kill_at_) return Steady::now() + kLookEvery;
    return because_ == Because::itself ? std::min(term_at_, kill_at_) : kill_at_;
  }

  // What is due by now: first the polite word, then the last one, then the report.
  void step(Steady::time_point now) {
    if (leader_ == 0) return;
    if (now >= term_at_ && because_ == Because::itself && !leader_ended_) {
      because_ = Because::deadline;
      signal_group(SIGTERM);
    }
    if (now >= kill_at_ && because_ == Because::itself && !leader_ended_) because_ = Because::deadline;
    if (now >= kill_at_ && because_ != Because::itself) kill_descendants();
    if (!leader_ended_) return;
    const bool forced = because_ != Because::itself;
    if (!(forced ? anybody_lives() : group_lives())) return report();
    if (forced) return kill_descendants();
    if (!rest_told_) signal_group(SIGTERM);
    rest_told_ = true;
    if (now >= std::min(rest_until_, kill_at_)) signal_group(SIGKILL);
  }

  void kill_descendants() {
    if (leader_ != 0) ::kill(-leader_, SIGKILL);
    for (const pid_t pid : descendants_of(getpid())) ::kill(pid, SIGKILL);
  }

  void report() {
    send_notice(channel_, {.kind = Notice::Kind::ended, .value = status_, .because = because_});
    reported_ = true;
  }

  // The CLI is gone, and with it the renewals; another node may be next at any moment.
  [[noreturn]] void end_everything() {
    for (;;) {
      kill_descendants();
      // Not left to init: in a container there may be none that cares.
      while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
      if (!anybody_lives()) _exit(0);
      poll(nullptr, 0, int(kLookEvery.count()));
    }
  }

  const SupervisorSettings& settings_;
  const int channel_;
  const std::vector<int> ignored_;  // before we ignored some ourselves
  const Signals children_;
  pid_t leader_ = 0;
  int status_ = 0;
  bool leader_ended_ = false, rest_told_ = false, reported_ = false;
  Because because_ = Because::itself;
  Steady::time_point term_at_ = kNever, kill_at_ = kNever, rest_until_ = kNever;
};

}  // namespace

void supervise(const SupervisorSettings& settings, UniqueFd channel) {
  // Out of the CLI's group, so that what is sent to that (Ctrl-C, kill -9 -PGID) does not end us before we
  // have ended the command; in its session, for the command's terminal is there.
  setpgid(0, 0);
  prctl(PR_SET_NAME, "turnstile-exec");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<int> ignored;
  for (const int number : kOurSignals) {
    if (signal(number, SIG_IGN) == SIG_IGN) ignored.push_back(number);
  }
  try {
    Supervisor(settings, channel.get(), std::move(ignored)).run();
  } catch (const std::exception&) {  // out of memory: the command dies with us (PDEATHSIG), the CLI sees it
    _exit(1);
  }
  _exit(0);
}

}  // namespace turnstile::cli
