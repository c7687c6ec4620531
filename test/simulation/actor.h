// A simulated client of the plain kind: sends what its moves say, on connections that break, and remembers
// what it was told.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "history.h"
#include "plan.h"

namespace turnstile::sim {

using Connect = std::function<LinkPtr(Remote&)>;

// Threads: one. Lives as long as the schedule in which its connections may still say something.
class Actor {
 public:
  Actor(std::string node, Schedule& schedule, History& history, Connect connect, Rare& rare);
  ~Actor();

  void make(const Move& move);
  // An endless reader of all events, which comes back when it is cut off.
  void watch_everything();
  // Gives up whatever it has or wants.
  void leave();
  void read_again();
  // Closes its connections, but for a stream of everything.
  void hang_up();
  // ... and this one, too.
  void stop_watching();
  // Requests of open connections that were never answered.
  size_t unanswered() const;

 private:
  class Connection;
  class Stream;
  // What it wants of a lane.
  struct Errand {
    std::string type, resource, request;
    uint64_t token = 0;  // of the hold, if it has been told of one
    bool waits = false;
  };

  Connection* connection();
  void send(WireRequest request, std::vector<Errand*> errands);
  void answered(const std::vector<Errand*>& errands, const std::vector<Call*>& calls);
  Errand& errand_for(const Move& move);
  Errand* latest(const Move& move);
  std::string lock_body(const Move& move, const Errand& errand) const;
  std::string unlock_body(const Move& move, const Errand& errand);
  std::string who_and_lane(const Errand& errand) const;
  void open_stream(const std::string& target, bool comes_back);

  const std::string node_;
  Schedule& schedule_;
  History& history_;
  const Connect connect_;
  Rare& rare_;
  bool left_ = false;
  uint64_t last_request_ = 0, last_token_ = 0, last_result_ = 0;
  std::deque<Errand> errands_;
  std::vector<std::unique_ptr<Connection>> connections_;  // the last two are in use
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace turnstile::sim
