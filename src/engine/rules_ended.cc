// Queues that end as a whole (S10, S12), and how their waiters are told, a few hundred in a step (S34).
//
// For every rule all of them have ended in the step that ended the hold: their lane's queue is empty, and
// whoever of them is heard of is told first (tell_named), so that nobody can see that others are not yet.
#include <algorithm>

#include "base/check.h"
#include "engine/rules.h"

namespace turnstile {

Endings& Rules::endings_of(Lane& lane) {
  LaneMemory& memory = lane.remember();
  if (!memory.endings) memory.endings = std::make_unique<Endings>();
  return *memory.endings;
}

void Rules::end_queue(Lane& lane, Ending how, const SharedText& error, const EndedHold& hold) {
  if (!lane.has_waiters()) return;
  auto ended = std::make_unique<EndedQueue>();
  ended->waiters = std::move(lane.queue);
  ended->ending = {how, error, Time{}, hold};
  if (settings_.claim_timeout > Duration(0)) ended->ending.until = later(now_, settings_.claim_timeout);

  const WaitQueue& waiters = *ended->waiters;
  const auto count = uint32_t(waiters.size());
  measure(MeasureKind::left_queue, lane, {}, count);
  measure(how == Ending::skipped ? MeasureKind::skipped : MeasureKind::refused, lane, {}, count);
  if (wants_records_) {
    Record gone = ending_record(RecordKind::queue_ended, lane, {}, ended->ending);
    gone.number = waiters.at(waiters.size() - 1).ticket;
    record(gone);
  }
  // S17: the reference comes with the answer to somebody who is there. Not when it is told: references can be
  // seen, and released again, before.
  if (how == Ending::skipped && lane.rules().references == OnReferences::add) insert_references(waiters);

  std::unique_ptr<EndedQueue>* last = &lane.remember().ended;
  while (*last) last = &(*last)->next;
  *last = std::move(ended);
  tell_ended(lane);
}

// The next ones, as many as this step may still tell.
void Rules::tell_ended(Lane& lane) {
  while (to_tell_ > 0 && lane.memory && lane.memory->ended) {
    EndedQueue& ended = *lane.memory->ended;
    tell(lane, ended, ended.waiters->front());
    --to_tell_;
    if (ended.waiters->empty()) lane.memory->ended = std::move(ended.next);
  }
}

// If this requester's wait has ended and it has not been told, it is now.
void Rules::tell_named(Lane& lane, const Requester& who) {
  if (!lane.memory) return;
  for (std::unique_ptr<EndedQueue>* at = &lane.memory->ended; *at; at = &(*at)->next) {
    const Waiter* waiter = (*at)->waiters->find(who);
    if (waiter == nullptr) continue;
    tell(lane, **at, *waiter);
    if ((*at)->waiters->empty()) *at = std::move((*at)->next);
    return;
  }
}

// Whoever is there hears of it; for the others it is remembered (S2). No record: queue_ended says it all.
void Rules::tell(Lane& lane, EndedQueue& ended, const Waiter& waiter) {
  const std::unique_ptr<Waiter> told = ended.waiters->remove(waiter);
  drop_connection_bonds(lane, told->who());
  if (ended.ending.until > now_) endings_of(lane).set(told->who(), ended.ending);
  if (told->polls.empty()) return;
  const bool skipped = ended.ending.how == Ending::skipped;
  Wake wake;
  wake.answer.state = skipped ? LockState::skipped : LockState::failed;
  wake.answer.refusal = skipped ? Refusal::none : Refusal::failed;
  wake.answer.error = keep(ended.ending.error);
  if (skipped) wake.answer.done = done_view(ended.ending.hold);
  for (PollId poll : told->polls) {
    wake.poll = poll;
    out_.wakes.push_back(wake);
    if (planted(Plant::ended_told_twice)) out_.wakes.push_back(wake);
  }
}

void Rules::go_on() {
  for_each_lane([&](Lane& lane) { tell_ended(lane); });
}

bool Rules::is_ended(const Lane& lane, const Requester& who) const {
  for (const EndedQueue* at = lane.memory ? lane.memory->ended.get() : nullptr; at != nullptr;
       at = at->next.get())
    if (at->waiters->find(who) != nullptr) return true;
  return false;
}

// All nodes of the queue whose long polls are open, in one pass over the set.
void Rules::insert_references(const WaitQueue& waiters) {
  if (!keeps_references() || planted(Plant::ended_adds_no_reference)) return;
  std::vector<std::string_view> added;
  for (size_t i = 0; i < waiters.size(); ++i)
    if (!waiters.at(i).polls.empty()) added.push_back(waiters.at(i).node);
  if (added.empty()) return;
  std::sort(added.begin(), added.end());
  if (!resource_.references) resource_.references = std::make_unique<std::vector<Text>>();
  std::vector<Text> merged;
  merged.reserve(resource_.references->size() + added.size());
  auto old = resource_.references->begin();
  for (std::string_view node : added) {
    while (old != resource_.references->end() && old->view() <= node) merged.push_back(std::move(*old++));
    if (!merged.empty() && merged.back().view() == node) continue;
    merged.push_back(Text(node));
    record(reference_record(RecordKind::reference_set, node));
  }
  std::move(old, resource_.references->end(), std::back_inserter(merged));
  counters_.references.fetch_add(merged.size() - resource_.references->size(), std::memory_order_relaxed);
  *resource_.references = std::move(merged);
  named_.reset();
}

}  // namespace turnstile
