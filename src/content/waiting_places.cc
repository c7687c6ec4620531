// See waiting_places.h.
#include "content/waiting_places.h"

#include <system_error>
#include <thread>
#include <vector>

#include "base/log.h"

namespace turnstile::content {

WaitingPlaces::Thread WaitingPlaces::start_thread(std::function<void()> body) {
  return std::make_shared<std::jthread>(std::move(body));
}

WaitingPlaces::Turn WaitingPlaces::ask(const Digest& digest) {
  std::unique_ptr<Place> place;  // ends below, without the lock: that waits for its thread
  Turn turn;
  {
    const Locked lock(mutex_);
    const auto found = places_.find(digest);
    if (found == places_.end()) return turn;
    found->second->asked = options_.now();
    if (!found->second->result) {
      turn.waiting = true;
      turn.why = found->second->why;
      return turn;
    }
    place = std::move(found->second);
    places_.erase(found);
  }
  turn.result = std::move(place->result);
  turn.request_id = place->request.request_id;
  turn.life = std::move(place->life);
  return turn;
}

bool WaitingPlaces::has(const Digest& digest) const {
  const Locked lock(mutex_);
  return places_.contains(digest);
}

bool WaitingPlaces::keep(const Digest& digest, LockRequest request, std::string why, std::string life) {
  const Locked lock(mutex_);
  if (leaving_ || places_.size() >= options_.most || places_.contains(digest)) return false;
  auto place = std::make_unique<Place>();
  place->request = std::move(request);
  place->why = std::move(why);
  place->life = std::move(life);
  place->asked = options_.now();
  Place& kept = *place;
  places_.emplace(digest, std::move(place));
  try {
    kept.thread = options_.start([this, &kept] { wait(kept); });
  } catch (const std::system_error& error) {  // the machine has no more threads: like a limit
    log_warning("no thread to keep a place in a queue", {{"error", error.what()}});
    places_.erase(digest);
    return false;
  }
  return true;
}

void WaitingPlaces::wait(Place& place) {
  Expected<Grant> result =
      server_.lock(place.request, LockClient::Clock::time_point::max(), place.stop.get_token());
  const Locked lock(mutex_);
  place.result = std::move(result);
  place.ended = options_.now();
}

void WaitingPlaces::sweep() {
  std::vector<std::unique_ptr<Place>> left;
  {
    const Locked lock(mutex_);
    const Clock::time_point now = options_.now();
    for (auto at = places_.begin(); at != places_.end();) {
      Place& place = *at->second;
      if (!place.result && now - place.asked > options_.for_asking) place.stop.request_stop();
      if (place.result && (now - place.ended > options_.for_taking || place.stop.stop_requested())) {
        left.push_back(std::move(at->second));
        at = places_.erase(at);
      } else {
        ++at;
      }
    }
  }
  for (std::unique_ptr<Place>& place : left) pass_on(std::move(place));
}

// The turn came and nobody took it. A skip has counted this node, which it is not: its line says so.
void WaitingPlaces::pass_on(std::unique_ptr<Place> place) {
  Expected<Grant>& result = *place->result;
  if (!result || !result->hold) return;
  log_info("nobody came back for a blob; the next node's turn", {{"digest", place->request.resource}});
  (void)result->hold->release(WorkResult::failed("nobody came back for it"));
}

void WaitingPlaces::leave_all() {
  Places left;
  {
    const Locked lock(mutex_);
    leaving_ = true;
    for (const auto& [digest, place] : places_) place->stop.request_stop();
    left.swap(places_);
  }
  for (auto& [digest, place] : left) {
    place->thread.reset();
    pass_on(std::move(place));
  }
}

}  // namespace turnstile::content
