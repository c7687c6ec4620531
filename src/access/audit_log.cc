#include "access/audit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/rfc3339.h"

namespace turnstile::access {
namespace {

constexpr mode_t kMode = 0640;
constexpr size_t kLongest = 1024;  // bytes of a text in a line
constexpr size_t kLongestOfStranger = 128;
constexpr std::chrono::seconds kTellUnlistedEvery{10};

std::string cut(std::string_view text, size_t longest = kLongest) {
  return std::string(text.substr(0, longest));
}

// Whether what was written to `before` is also in `now`: the same file, and nobody has emptied it.
bool goes_on(int before, int now) {
  struct stat old_one{}, new_one{};
  return ::fstat(before, &old_one) == 0 && ::fstat(now, &new_one) == 0 && old_one.st_dev == new_one.st_dev &&
         old_one.st_ino == new_one.st_ino && new_one.st_size > 0;
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(const std::string& target,
                                                 const std::string& journal_socket) {
  const Kind kind = target.empty()        ? Kind::log
                    : target == "off"     ? Kind::off
                    : target == "journal" ? Kind::journal
                                          : Kind::file;
  std::unique_ptr<AuditLog> made(new AuditLog(kind, kind == Kind::journal ? journal_socket : target));
  if (Result<void> opened = made->open_target(); !opened) return std::unexpected(opened.error());
  if (kind != Kind::off) made->thread_ = std::jthread([log = made.get()] { log->run(); });
  return made;
}

AuditLog::~AuditLog() {
  {
    const Locked lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

Result<void> AuditLog::open_target() {
  if (kind_ == Kind::file) {
    fd_ = UniqueFd(::open(target_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMode));
    if (!fd_.is_open())
      return fail(fmt::format("the audit log {} cannot be opened: {}", target_, std::strerror(errno)));
  } else if (kind_ == Kind::journal) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (target_.size() >= sizeof address.sun_path)
      return fail(fmt::format("{} is too long for a socket", target_));
    std::memcpy(address.sun_path, target_.data(), target_.size());
    fd_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd_.is_open() ||
        ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return fail(fmt::format("the system's journal at {} cannot be reached: {}; give --audit-log a file",
                              target_, std::strerror(errno)));
  }
  return {};
}

void AuditLog::write(const AuditEntry& entry) {
  if (kind_ == Kind::off) return;
  const bool stranger = entry.name.empty() && entry.what == "refused";
  Line line{machine_time().wall(),
            cut(entry.what),
            cut(entry.name),
            cut(entry.address),
            cut(entry.call, stranger ? kLongestOfStranger : kLongest),
            cut(entry.resource),
            cut(entry.node),
            cut(entry.outcome),
            entry.count};
  {
    const Locked lock(mutex_);
    if (stranger && !lists_stranger()) {
      unlisted_ += entry.count;
      return;
    }
    if (waiting_.size() >= kMostWaiting) return lost(1);
    waiting_.push_back(std::move(line));
  }
  changed_.notify_one();
}

bool AuditLog::lists_stranger() {
  const Duration now = machine_time().steady();
  const double passed = std::chrono::duration<double>(now - std::exchange(counted_at_, now)).count();
  strangers_ = std::min<double>(kStrangersAtOnce, strangers_ + passed * kStrangersASecond);
  if (strangers_ < 1) return false;
  strangers_ -= 1;
  return true;
}

void AuditLog::add_unlisted() {
  if (unlisted_ == 0) return;
  Line line{};
  line.time = machine_time().wall();
  line.what = "refused";
  line.outcome = "unlisted";
  line.count = std::exchange(unlisted_, 0);
  waiting_.push_back(std::move(line));
}

void AuditLog::reopen() {
  {
    const Locked lock(mutex_);
    reopen_ = true;
  }
  changed_.notify_one();
}

void AuditLog::run() {
  std::vector<Line> lines;
  Duration told_at{};
  for (bool stop = false; !stop;) {
    bool reopen = false;
    lines.clear();
    {
      const Locked lock(mutex_);
      // Woken now and then, for who is not listed wakes nobody.
      while (waiting_.empty() && !reopen_ && !stop_ && unlisted_ == 0)
        changed_.wait_for(mutex_, kTellUnlistedEvery);
      const Duration now = machine_time().steady();
      if (stop_ || now >= told_at + kTellUnlistedEvery) {
        if (unlisted_ > 0) told_at = now;
        add_unlisted();
      } else if (waiting_.empty() && !reopen_) {
        changed_.wait_for(mutex_, told_at + kTellUnlistedEvery - now);
      }
      // It may have been told to stop during that wait: then this is the last chance to tell of them.
      stop = stop_;
      if (stop) add_unlisted();
      lines.swap(waiting_);
      reopen = std::exchange(reopen_, false);
    }
    if (reopen) {
      UniqueFd before = std::move(fd_);
      if (Result<void> opened = open_target(); !opened) {
        log_error("reopening the audit log failed; the old one goes on", {{"error", opened.error().message}});
        fd_ = std::move(before);
      } else {
        torn_ = torn_ && goes_on(before.get(), fd_.get());
      }
    }
    for (const Line& line : lines) put(line);
  }
}

void AuditLog::put(const Line& line) {
  const LogFields fields{{"name", line.name},         {"address", line.address}, {"call", line.call},
                         {"resource", line.resource}, {"node", line.node},       {"outcome", line.outcome},
                         {"count", line.count}};
  if (kind_ == Kind::log) return log_info("audit: " + line.what, fields);
  std::string text = "{\"time\":\"";
  append_rfc3339(text, line.time);
  text += "\"," + format_log_line(LogFormat::json, line.what, fields) + "}";
  if (kind_ == Kind::journal) return put_in_journal(text);
  text += '\n';
  if (torn_) text.insert(0, 1, '\n');  // behind the part of a line that a full disk has left
  const ssize_t count = ::write(fd_.get(), text.data(), text.size());
  const int why = count < 0 ? errno : ENOSPC;
  const bool written = count == ssize_t(text.size());
  if (count > 0) torn_ = !written;
  if (!written) lost(1);
  if (written == failing_) {  // has begun to fail, or works again
    failing_ = !written;
    if (failing_)
      log_error("the audit log cannot be written", {{"file", target_}, {"error", std::strerror(why)}});
  }
}

// One datagram, in the journal's own protocol: fields, a line each.
void AuditLog::put_in_journal(const std::string& text) {
  const std::string message = "MESSAGE=" + text + "\nPRIORITY=5\nSYSLOG_IDENTIFIER=turnstiled-audit\n";
  if (::send(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL) == ssize_t(message.size())) return;
  (void)open_target();  // it may have been started again
  if (::send(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL) != ssize_t(message.size())) lost(1);
}

}  // namespace turnstile::access
