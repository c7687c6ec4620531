// What all simulated histories have in common: the clients, their moves, how it ends, and who judges it.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actor.h"
#include "checker.h"
#include "library_client.h"
#include "world.h"

namespace turnstile::sim {

// Plays one plan, once. Who derives from it brings the servers and their weather.
//
// Threads: one. Invariant: when run() has returned there is no client any more, so that servers may go.
class Driver {
 public:
  Driver(const Plan& plan, bool with_trace);
  virtual ~Driver() = default;

  Outcome run();

 protected:
  // As the library names them.
  virtual std::vector<std::string> servers() const = 0;
  virtual void start_servers() = 0;
  // A connection to the server of that name; empty: to any that may be right. None: nobody is there.
  virtual LinkPtr connect(Remote& remote, std::string_view server) = 0;
  virtual void make_weather(const Move& move) = 0;
  virtual Judged judged() const = 0;
  // The weather is good from now on, and this returns when the servers have noticed.
  virtual void heal() = 0;
  // Nothing much happens any more.
  virtual void take_it_easy() = 0;
  // As those that serve have them.
  virtual size_t lanes_in_use() = 0;
  virtual size_t listeners() = 0;
  // Nothing of the servers' is under way when it returns.
  virtual void shut_down() {}

  void disturb(Time from, Time to) { disturbances_.push_back({from, to}); }
  void violation(std::string text) { violations_.push_back(std::move(text)); }
  // S31: what was told is known to whoever has just loaded the state.
  void check_loaded(const std::set<uint64_t>& known);

  const Plan& plan_;
  Rare rare_;
  Schedule schedule_;
  History history_;
  std::vector<Disturbance> disturbances_;
  uint64_t crashes_ = 0;

 private:
  void make(const Move& move);
  void begin_library(const Move& move);
  void end_all();
  void end_streams();

  std::vector<std::unique_ptr<Actor>> actors_;  // the last one only watches
  std::vector<std::unique_ptr<LibraryClient>> libraries_;
  std::vector<std::string> violations_;
};

}  // namespace turnstile::sim
