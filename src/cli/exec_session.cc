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
#include <system_error>
#include <utility>

#include "base/standard_streams.h"
#include "base/utf8.h"
#include "cli/exec_supervisor.h"

namespace turnstile::cli {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr size_t kPipeFill = 64 * 1024;  // what a pipe holds
constexpr size_t kLongestProgressLine = 1'000;
constexpr size_t kLongestResult = 4'096;       // that the server takes
constexpr std::chrono::seconds kTimeToEnd{5};  // after a --timeout

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
  const char* const begin = line.data();
  const char* const end = begin + line.size();
  const auto first = std::from_chars(begin, end, done);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return false;
  const auto second = std::from_chars(first.ptr + 1, end, total);
  if (second.ec != std::errc()) return false;
  hold.report_progress(done, total);
  return true;
}

struct Pipe {
  UniqueFd reading, writing;
};

// For the command to write to. Our end does not block; its own blocks like any pipe: a writer must not see
// EAGAIN.
Pipe pipe_from_command() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFL, 0);
  return {.reading = UniqueFd(ends[0]), .writing = UniqueFd(ends[1])};
}

}  // namespace

Deadlines deadlines_of(Steady::time_point believed_until, Milliseconds lease) {
  constexpr Milliseconds kPolite{10'000}, kSure{1'000};  // are enough, however long the lease
  return {.term_at = believed_until - std::min(lease / 4, kPolite),
          .kill_at = believed_until - std::min(lease / 20, kSure)};
}

ExecSession::ExecSession(const std::vector<std::string>& command, const Signals& signals)
    : signals_(signals) {
  ChannelEnds ends = make_channel();
  Pipe progress = pipe_from_command(), result = pipe_from_command();
  std::fflush(nullptr);  // what is buffered is ours alone
  supervisor_ = fork();
  if (supervisor_ < 0) throw std::system_error(errno, std::generic_category(), "cannot start a process");
  if (supervisor_ == 0) {
    ends.cli = UniqueFd();
    progress.reading = UniqueFd();
    result.reading = UniqueFd();
    setenv("TURNSTILE_PROGRESS_FD", fmt::to_string(progress.writing.get()).c_str(), 1);
    setenv("TURNSTILE_RESULT_FD", fmt::to_string(result.writing.get()).c_str(), 1);
    supervise({.command = command,
               .mask = signals.mask_before(),
               .pipes = {progress.writing.get(), result.writing.get()}},
              std::move(ends.supervisor));
  }
  progress_ = std::move(progress.reading);
  result_ = std::move(result.reading);
  channel_ = std::move(ends.cli);
  signal(SIGPIPE, SIG_IGN);  // to die of our own output would be to drop the hold
  signal(SIGXFSZ, SIG_IGN);  // likewise: a log that may not grow
  signal(SIGTTOU, SIG_IGN);  // we take the terminal back, and write to it, from the background
}

ExecSession::~ExecSession() {
  channel_ = UniqueFd();
  while (waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) continue;
  terminal_.take_back(killed_);
}

// The callback may come late, on a thread of the client's: it shares the descriptor.
void ExecSession::watch_hold(Hold& hold) {
  changed_ = std::make_shared<UniqueFd>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  hold.on_change([changed = changed_](HoldState) {
    const uint64_t one = 1;
    (void)!write(changed->get(), &one, sizeof one);
  });
}

CommandEnd ExecSession::run(Hold& hold, Milliseconds lease, std::optional<Milliseconds> timeout) {
  watch_hold(hold);
  tell_deadline(hold, lease);
  if (timeout) timeout_at_ = Steady::now() + *timeout;
  const bool foreground = terminal_.prepare();
  send_order(channel_.get(), {.kind = Order::Kind::start, .foreground = foreground}, environment_of(hold));
  // Confirmed renewals are not announced, so they are looked for.
  const int every = int(std::clamp<int64_t>(lease.count() / 20, 5, 500));
  for (;;) {
    std::array<pollfd, 5> wanted = {pollfd{.fd = channel_.get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = changed_->get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = progress_.get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = result_.get(), .events = POLLIN, .revents = 0}};
    poll(wanted.data(), wanted.size(), every);
    if (wanted[1].revents != 0) pass_signals();
    uint64_t count;
    (void)!read(changed_->get(), &count, sizeof count);
    tell_deadline(hold, lease);
    keep_timeout(Steady::now());
    if (leader_ != 0) terminal_.pass_on_to(leader_);
    if (wanted[3].revents != 0) pass_progress(hold);
    if (wanted[4].revents != 0) take_result();
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

// The command may write faster than this reads; a deadline and a signal must not wait for that. So a round
// takes a pipe's fill at most, and of what it says the last word is reported.
void ExecSession::pass_progress(Hold& hold) {
  std::array<char, kPipeFill> buffer;
  const ssize_t got = read(progress_.get(), buffer.data(), buffer.size());
  if (got == 0) progress_ = UniqueFd();  // nobody is left to write; poll passes over -1
  if (got <= 0) return;
  progress_text_.append(buffer.data(), size_t(got));
  std::string_view lines = progress_text_;
  const size_t end = lines.rfind('\n') + 1;  // of the last whole line; 0: there is none
  lines = lines.substr(0, end);
  while (!lines.empty()) {
    lines.remove_suffix(1);
    const size_t begin = lines.rfind('\n') + 1;
    if (report_line(hold, lines.substr(begin))) break;
    lines = lines.substr(0, begin);
  }
  progress_text_.erase(0, end);
  if (progress_text_.size() > kLongestProgressLine) progress_text_.clear();
}

// As much as a result may have, and a byte more, so that it is seen to be too long; the rest is thrown away.
// A round takes a pipe's fill at most, which is also all that can be left when the command has ended.
void ExecSession::take_result() {
  std::array<char, kPipeFill> buffer;
  const ssize_t got = read(result_.get(), buffer.data(), buffer.size());
  if (got == 0) result_ = UniqueFd();
  if (got <= 0) return;
  result_text_.append(buffer.data(), std::min(size_t(got), kLongestResult + 2 - result_text_.size()));
}

std::expected<std::string, std::string> ExecSession::result() const {
  std::string text = result_text_;
  if (text.ends_with('\n')) text.pop_back();  // as of $(…)
  if (text.size() > kLongestResult)
    return std::unexpected(fmt::format("is longer than {} bytes", kLongestResult));
  if (!is_utf8(text)) return std::unexpected("is no UTF-8 text");
  return text;
}

void ExecSession::keep_timeout(Steady::time_point now) {
  if (leader_ == 0 || now < std::min(timeout_at_, timeout_kill_at_)) return;
  const bool first = !std::exchange(timed_out_, true);
  send_order(channel_.get(), {.kind = Order::Kind::signal, .signal = first ? SIGTERM : SIGKILL});
  timeout_at_ = Steady::time_point::max();
  timeout_kill_at_ = first ? now + kTimeToEnd : Steady::time_point::max();
}

std::optional<CommandEnd> ExecSession::take_notice() {
  using Kind = CommandEnd::Kind;
  const std::optional<Notice> notice = receive_notice(channel_.get());
  if (!notice) {
    if (leader_ != 0) ::kill(-leader_, SIGKILL);
    killed_ = true;
    return CommandEnd{.kind = Kind::unsupervised, .value = 0};
  }
  switch (notice->kind) {
    case Notice::Kind::started:
      leader_ = notice->value;
      terminal_.started_as(leader_);
      return std::nullopt;
    case Notice::Kind::not_started:
      return CommandEnd{.kind = Kind::not_started, .value = notice->value};
    case Notice::Kind::stopped:
      if (!terminal_.is_ours()) {
        print_error("turnstile: the command waits for the terminal, and holds the lock meanwhile: type fg\n");
      }
      return std::nullopt;
    case Notice::Kind::ended:
      break;
  }
  take_result();  // what came with its end
  const CommandEnd end = end_of(*notice);
  killed_ = end.kind != Kind::exited;
  return end;
}

CommandEnd ExecSession::end_of(const Notice& notice) const {
  using Kind = CommandEnd::Kind;
  if (notice.because == Notice::Because::killed) return {.kind = Kind::lost, .value = 0};
  if (notice.because == Notice::Because::deadline) return {.kind = Kind::in_danger, .value = 0};
  if (timed_out_) return {.kind = Kind::timed_out, .value = 0};
  if (WIFSIGNALED(notice.value)) return {.kind = Kind::signalled, .value = WTERMSIG(notice.value)};
  return {.kind = Kind::exited, .value = WEXITSTATUS(notice.value)};
}

}  // namespace turnstile::cli
