#include "cli/exec_session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "cli/exec_supervisor.h"

namespace turnstile::cli {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr size_t kLongestProgressLine = 1'000;

// What the command finds in its environment.
std::string environment_of(const Hold& hold) {
  std::string block;
  const auto add = [&](std::string_view name, std::string_view value) {
    block.append(name).append("=").append(value.substr(0, value.find('\0'))).push_back('\0');
  };
  add("TURNSTILE_TOKEN", fmt::to_string(hold.token()));
  add("TURNSTILE_ATTEMPT", fmt::to_string(hold.attempt()));
  add("TURNSTILE_PREVIOUS_ERROR", hold.previous_error());
  add("TURNSTILE_OPERATION", hold.operation());
  add("TURNSTILE_RESOURCE", hold.resource());
  return block;
}

// "DONE TOTAL"
bool report_line(Hold& hold, std::string_view line) {
  uint64_t done = 0, total = 0;
  const char* end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, done);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return false;
  const auto second = std::from_chars(first.ptr + 1, end, total);
  if (second.ec != std::errc()) return false;
  hold.report_progress(done, total);
  return true;
}

bool we_have_the_terminal() { return isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

}  // namespace

Deadlines deadlines_of(Steady::time_point believed_until, Milliseconds lease) {
  constexpr Milliseconds kPolite{10'000}, kSure{1'000};  // are enough, however long the lease
  return {.term_at = believed_until - std::min(lease / 4, kPolite),
          .kill_at = believed_until - std::min(lease / 20, kSure)};
}

ExecSession::ExecSession(const std::vector<std::string>& command, const Signals& signals)
    : signals_(signals), foreground_(we_have_the_terminal()) {
  ChannelEnds ends = make_channel();
  std::array<int, 2> progress{};
  TS_CHECK(pipe2(progress.data(), O_NONBLOCK) == 0, "there is a pipe");
  progress_ = UniqueFd(progress[0]);
  UniqueFd command_progress(progress[1]);
  fcntl(progress_.get(), F_SETFD, FD_CLOEXEC);
  // The command's end blocks like any pipe: a writer must not see EAGAIN.
  fcntl(command_progress.get(), F_SETFL, 0);
  std::fflush(nullptr);  // what is buffered is ours alone
  supervisor_ = fork();
  TS_CHECK(supervisor_ >= 0, "a process can be forked");
  if (supervisor_ == 0) {
    ends.cli = UniqueFd();
    progress_ = UniqueFd();
    setenv("TURNSTILE_PROGRESS_FD", fmt::to_string(command_progress.get()).c_str(), 1);
    supervise({.command = command,
               .mask = signals.mask_before(),
               .foreground = foreground_,
               .progress_fd = command_progress.get()},
              std::move(ends.supervisor));
  }
  channel_ = std::move(ends.cli);
  signal(SIGPIPE, SIG_IGN);  // to die of our own output would be to drop the hold
  signal(SIGTTOU, SIG_IGN);  // we take the terminal back, and write to it, from the background
}

ExecSession::~ExecSession() {
  channel_ = UniqueFd();
  while (waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) continue;
  if (foreground_ && leader_ != 0) tcsetpgrp(STDIN_FILENO, getpgrp());
}

// The callback may come late, on a thread of the client's: it shares the descriptor.
void ExecSession::watch_hold(Hold& hold) {
  changed_ = std::make_shared<UniqueFd>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  hold.on_change([changed = changed_](HoldState) {
    const uint64_t one = 1;
    (void)!write(changed->get(), &one, sizeof one);
  });
}

CommandEnd ExecSession::run(Hold& hold, Milliseconds lease) {
  watch_hold(hold);
  tell_deadline(hold, lease);
  send_order(channel_.get(), {.kind = Order::Kind::start}, environment_of(hold));
  // Confirmed renewals are not announced, so they are looked for.
  const int every = int(std::clamp<int64_t>(lease.count() / 20, 5, 500));
  for (;;) {
    std::array<pollfd, 4> wanted = {pollfd{.fd = channel_.get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = changed_->get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = progress_.get(), .events = POLLIN, .revents = 0}};
    poll(wanted.data(), wanted.size(), every);
    if (wanted[1].revents != 0) pass_signals();
    uint64_t count;
    (void)!read(changed_->get(), &count, sizeof count);
    tell_deadline(hold, lease);
    if (wanted[3].revents != 0) pass_progress(hold);
    if (wanted[0].revents == 0) continue;
    if (const std::optional<CommandEnd> end = take_notice()) return *end;
  }
}

void ExecSession::tell_deadline(Hold& hold, Milliseconds lease) {
  const Steady::time_point until = hold.believed_until();
  // Lost before its time: the server has told us. Otherwise the supervisor knows the time itself.
  if (hold.state() == HoldState::lost && Steady::now() < until && !told_lost_) {
    told_lost_ = true;
    send_order(channel_.get(), {.kind = Order::Kind::kill});
  }
  if (until == told_until_) return;
  told_until_ = until;
  const Deadlines deadlines = deadlines_of(until, lease);
  send_order(channel_.get(),
             {.kind = Order::Kind::deadline, .term_at = deadlines.term_at, .kill_at = deadlines.kill_at});
}

void ExecSession::pass_signals() {
  while (const std::optional<int> number = signals_.next(Milliseconds(0))) {
    send_order(channel_.get(), {.kind = Order::Kind::signal, .signal = *number});
  }
}

void ExecSession::pass_progress(Hold& hold) {
  std::array<char, 4096> buffer;
  ssize_t got;
  while ((got = read(progress_.get(), buffer.data(), buffer.size())) > 0) {
    progress_text_.append(buffer.data(), size_t(got));
    for (size_t end; (end = progress_text_.find('\n')) != std::string::npos;) {
      report_line(hold, std::string_view(progress_text_).substr(0, end));
      progress_text_.erase(0, end + 1);
    }
    if (progress_text_.size() > kLongestProgressLine) progress_text_.clear();
  }
  if (got == 0) progress_ = UniqueFd();  // nobody is left to write; poll passes over -1
}

std::optional<CommandEnd> ExecSession::take_notice() {
  using Kind = CommandEnd::Kind;
  const std::optional<Notice> notice = receive_notice(channel_.get());
  if (!notice) {
    if (leader_ != 0) ::kill(-leader_, SIGKILL);
    return CommandEnd{.kind = Kind::unsupervised, .value = 0};
  }
  switch (notice->kind) {
    case Notice::Kind::started:
      leader_ = notice->value;
      return std::nullopt;
    case Notice::Kind::not_started:
      return CommandEnd{.kind = Kind::not_started, .value = notice->value};
    case Notice::Kind::ended:
      break;
  }
  if (notice->because == Notice::Because::killed) return CommandEnd{.kind = Kind::lost, .value = 0};
  if (notice->because == Notice::Because::deadline) return CommandEnd{.kind = Kind::in_danger, .value = 0};
  if (WIFSIGNALED(notice->value))
    return CommandEnd{.kind = Kind::signalled, .value = WTERMSIG(notice->value)};
  return CommandEnd{.kind = Kind::exited, .value = WEXITSTATUS(notice->value)};
}

}  // namespace turnstile::cli
