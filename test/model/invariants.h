// What must hold of any lock service, checked on what the engine says alone, without the model: so that a
// mistake that model and engine share is still seen.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "plain.h"

namespace turnstile::model {

// One holder per conflict; tokens only grow; first in, first out; a waiter has exactly one outcome; a poll is
// woken exactly once; a free lane has no waiter that could go.
//
// Fed with each answer, step and status in the order of the calls. A broken invariant is returned as a
// sentence.
class Invariants {
 public:
  explicit Invariants(uint64_t first_token) : last_token_(first_token) {}

  // Who asked with which scope; it counts if it is new.
  void asked(const Lane& lane, const Who& who, Scope scope, uint64_t poll, const PlainLock& answer);
  void poll_gone(uint64_t poll) { polls_.erase(poll); }
  // The engine owes this poll its wake (S34).
  void owe(uint64_t poll) {
    if (polls_.erase(poll) > 0) owed_.insert(poll);
  }
  void polls_gone() {
    polls_.clear();
    owed_.clear();
  }

  std::string step(const Step& step);
  // After the step: the status of every lane of one resource.
  std::string after(const std::vector<PlainStatus>& lanes);

 private:
  struct Held {
    Who who;
    Scope scope{};
    uint64_t token = 0;
  };
  struct Waiting {
    Who who;
    Scope scope{};
    uint64_t ticket = 0;
  };
  struct Poll {
    Lane lane;
    Who who;
  };

  std::string granted(const PlainEvent& event);
  std::string ended(const PlainEvent& event);
  std::string left(const Lane& lane, const PlainStatus& status);
  std::string nobody_could_go(const std::string& resource) const;

  std::map<Lane, Held> holds_;
  std::map<Lane, std::vector<Waiting>> queues_;
  std::map<Lane, std::map<Who, int>> outcomes_;  // told by events since the last after()
  std::map<Lane, Scope> new_scope_;  // of a request that may be granted in the step that is about to be told
  std::map<Lane, uint64_t> granted_ticket_;  // the latest waiter granted since the last after()
  std::map<uint64_t, Poll> polls_;
  std::set<uint64_t> owed_;
  uint64_t last_token_;
  uint64_t last_ticket_ = 0;
};

}  // namespace turnstile::model
