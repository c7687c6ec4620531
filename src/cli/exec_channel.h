// What `exec` and its supervisor say to each other: whole messages over a pair of sockets. Both ends are the
// same program on the same machine, so a message is a struct as it lies in memory.
//
// Three processes: the CLI talks to the server and keeps the lease; the supervisor, forked from it before it
// has threads, starts the command, is its parent, and ends it when told so, when the lease runs out, or when
// the CLI is gone; the command is the leader of a process group of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/signals.h"
#include "turnstile/clock.h"

namespace turnstile::cli {

using Steady = LeaseClock;  // of CLOCK_BOOTTIME, which is the same in both processes

// From the CLI to the supervisor.
struct Order {
  enum class Kind : int32_t {
    start,     // the payload is "NAME=VALUE\0…" for the command's environment
    deadline,  // end the command politely at term_at and surely at kill_at, unless told later times before
    signal,    // pass it on to the command's group
    kill,      // end everything now: the hold is gone
  };
  Kind kind = Kind::start;
  int32_t signal = 0;
  bool foreground = false;  // with start: the command gets the terminal
  Steady::time_point term_at{}, kill_at{};
};

// From the supervisor to the CLI.
struct Notice {
  enum class Kind : int32_t {
    started,      // value: the command's process id, which is its group's
    not_started,  // value: errno
    stopped,      // it wants the terminal, and does not have it
    ended,        // value: the status, as of waitpid; nobody of its group lives
  };
  enum class Because : int32_t { itself, deadline, killed };
  Kind kind = Kind::started;
  int32_t value = 0;
  Because because = Because::itself;
};

struct ChannelEnds {
  UniqueFd cli, supervisor;
};
ChannelEnds make_channel();

// False: the other side is gone.
bool send_order(int fd, const Order& order, const std::string& payload = {});
bool send_notice(int fd, const Notice& notice);

struct ReceivedOrder {
  Order order;
  std::string payload;
};
// nullopt: the other side is gone. Blocks until a message is there.
std::optional<ReceivedOrder> receive_order(int fd);
std::optional<Notice> receive_notice(int fd);

}  // namespace turnstile::cli
