// Section 8 of docs/semantics.md: the state of a resource as facts for the journal, and back.
#include "engine/rules.h"

namespace turnstile {
namespace {

// Of an ending_set or queue_ended.
Endings::Entry ending_of(const Record& record, const LoadedTexts& texts) {
  return {
      Ending(record.attempt),
      texts.error,
      record.until,
      {Token(record.progress.done), uint32_t(record.progress.total), texts.node, record.since, texts.result}};
}

// `shared` becomes a copy of `text`, if it is not one already.
template <class Shared, class... More>
Shared share(Shared& shared, std::string_view text, More&... more) {
  if (text.empty()) return {};
  if (text != shared.view()) shared = Shared(text, more...);
  return shared;
}

}  // namespace

Record Rules::fact(RecordKind kind, const Lane* lane) {
  Record record;
  record.kind = kind;
  record.lane.resource = ResourceId(resource_.id);
  if (lane != nullptr) record.lane.operation = name_of(*lane);
  return record;
}

void Rules::record_lane(RecordKind kind, const Lane& lane, uint64_t number) {
  if (!wants_records_) return;
  Record gone = fact(kind, &lane);
  gone.number = number;
  record(gone);
}

void Rules::record_hold(const Lane& lane) {
  if (wants_records_) record(hold_record(lane));
}

void Rules::record_waiter(const Lane& lane, const Waiter& waiter) {
  if (wants_records_) record(waiter_record(lane, waiter));
}

Record Rules::hold_record(const Lane& lane) {
  const Hold& hold = lane.hold;
  Record set = fact(RecordKind::hold_set, &lane);
  set.who = keep(hold.who());
  set.number = uint64_t(hold.token);
  set.since = hold.since;
  set.until = hold.until;
  set.lease = std::chrono::milliseconds(hold.lease_ms);
  set.attempt = hold.attempt;
  if (hold.scope == Scope::resource) set.flags |= kFlagResourceScope;
  if (hold.monitor) set.flags |= kFlagMonitor;
  if (!hold.claimed()) set.flags |= kFlagUnclaimed;
  if (hold.extras) {
    set.text = out_.keep(hold.extras->info);
    set.error = keep(hold.extras->previous_error);
    if (hold.extras->progress_at != kNever) {
      set.flags |= kFlagProgress;
      set.progress = hold.extras->progress;
    }
  }
  return set;
}

Record Rules::waiter_record(const Lane& lane, const Waiter& waiter) {
  Record set = fact(RecordKind::waiter_set, &lane);
  set.who = keep(waiter.who());
  set.number = waiter.ticket;
  set.since = waiter.since;
  set.lease = waiter.lease;
  set.text = out_.keep(waiter.info);
  if (waiter.scope == Scope::resource) set.flags |= kFlagResourceScope;
  if (waiter.monitor) set.flags |= kFlagMonitor;
  if (waiter.dereference) set.flags |= kFlagDereference;
  if (waiter.bonded) set.flags |= kFlagBonded;
  return set;
}

Record Rules::completion_record(const Lane& lane) {
  const Completion& last = *lane.completion;
  Record set = fact(RecordKind::completion_set, &lane);
  set.who.node = node_of(last.hold);
  set.since = last.hold.at;
  set.until = last.until;
  set.error = keep(last.error);
  set.result = keep(last.hold.result);
  if (last.success) set.flags |= kFlagSuccess;
  if (last.permanent) set.flags |= kFlagPermanent;
  set.number = uint64_t(last.hold.token);
  set.attempt = last.hold.attempt;
  return set;
}

Record Rules::released_record(const Lane& lane) {
  const Released& released = lane.memory->released;
  Record set = fact(RecordKind::released_set, &lane);
  set.who.node = NodeId(out_.keep(released.node));
  set.number = uint64_t(released.token);
  set.until = released.until;
  return set;
}

Record Rules::failures_record(const Lane& lane) {
  Record set = fact(RecordKind::failures_set, &lane);
  set.attempt = lane.failures;
  if (lane.memory) set.error = keep(lane.memory->last_error);
  return set;
}

Record Rules::ending_record(RecordKind kind, const Lane& lane, const Requester& who,
                            const Endings::Entry& entry) {
  Record set = fact(kind, &lane);
  set.who = keep(who);
  set.attempt = uint32_t(entry.how);
  set.error = keep(entry.error);
  set.until = entry.until;
  set.progress = {uint64_t(entry.hold.token), entry.hold.attempt};
  if (entry.how != Ending::skipped) return set;
  set.text = node_of(entry.hold).text;
  if (!set.text.empty()) set.since = entry.hold.at;
  set.result = keep(entry.hold.result);
  return set;
}

Record Rules::reference_record(RecordKind kind, std::string_view node) {
  Record set = fact(kind, nullptr);
  set.who.node = NodeId(out_.keep(node));
  return set;
}

void Rules::dump() {
  const auto write = [this](const Record& record) { out_.records.push_back(record); };
  for_each_lane([&](Lane& lane) {
    if (lane.hold.held()) write(hold_record(lane));
    const size_t waiters = lane.queue ? lane.queue->size() : 0;
    for (size_t i = planted(Plant::snapshot_without_first_waiter) ? 1 : 0; i < waiters; ++i)
      write(waiter_record(lane, lane.queue->at(i)));
    if (lane.completion && !planted(Plant::snapshot_without_completion)) {
      Record kept = completion_record(lane);
      if (planted(Plant::snapshot_without_result)) kept.result = {};
      write(kept);
    }
    if (lane.failures > 0) write(failures_record(lane));
    if (!lane.memory) return;
    if (lane.memory->released.token != Token::none) write(released_record(lane));
    if (lane.memory->endings) {
      lane.memory->endings->for_each([&](const Requester& who, const Endings::Entry& entry) {
        write(ending_record(RecordKind::ending_set, lane, who, entry));
      });
    }
    for (const EndedQueue* at = lane.memory->ended.get(); at != nullptr; at = at->next.get()) {
      for (size_t i = 0; at->ending.until != Time{} && i < at->waiters->size(); ++i)
        write(ending_record(RecordKind::ending_set, lane, at->waiters->at(i).who(), at->ending));
    }
  });
  if (!resource_.references || planted(Plant::snapshot_without_references)) return;
  for (const Text& node : *resource_.references) write(reference_record(RecordKind::reference_set, node));
}

void Rules::load(const Record& record, const Operation* operation, LoadedTexts& last) {
  if (record.kind == RecordKind::reference_set) {
    insert_reference(record.who.node);
  } else if (record.kind == RecordKind::reference_erased) {
    erase_reference(record.who.node);
  } else if (operation != nullptr) {
    const bool ends_wait = record.kind == RecordKind::ending_set || record.kind == RecordKind::queue_ended;
    const std::string_view node = ends_wait ? record.text : record.who.node.text;
    const bool names_hold = ends_wait || record.kind == RecordKind::completion_set;
    load_lane(record, *operation,
              {share(last.error, record.error), names_hold ? share(last.node, node) : SharedText(),
               share(last.result, record.result, counters_.result_bytes)});
  }
}

void Rules::load_lane(const Record& record, const Operation& operation, const LoadedTexts& texts) {
  Lane& lane = get_lane(operation);
  const auto has = [&](uint8_t flag) { return (record.flags & flag) != 0; };
  switch (record.kind) {
    case RecordKind::hold_set: {
      Hold hold;
      hold.node = Text(record.who.node.text);
      hold.request = Text(record.who.request.text);
      hold.token = Token(record.number);
      hold.since = record.since;
      hold.until = record.until;
      hold.lease_ms = uint32_t(to_ms(record.lease));
      hold.attempt = record.attempt;
      hold.scope = has(kFlagResourceScope) ? Scope::resource : Scope::operation;
      hold.monitor = has(kFlagMonitor);
      hold.deadline = has(kFlagUnclaimed) ? Deadline::unclaimed
                      : hold.lease_ms > 0 ? Deadline::lease
                                          : Deadline::max_hold;
      if (!record.text.empty()) hold.extra().info = Text(record.text);
      if (!texts.error.empty()) hold.extra().previous_error = texts.error;
      if (has(kFlagProgress)) {
        hold.extra().progress = record.progress;
        hold.extra().progress_at = Time{};  // finish_load() sets it
      }
      lane.hold = std::move(hold);
      break;
    }
    case RecordKind::hold_erased:
      lane.hold = Hold();
      break;
    case RecordKind::waiter_set: {
      if (!lane.queue) lane.queue = std::make_unique<WaitQueue>();
      if (Waiter* known = lane.queue->find_ticket(record.number)) lane.queue->remove(*known);
      // A snapshot taken under load may hold the requester's later place, whose record is still to come.
      if (Waiter* later_place = lane.queue->find(record.who)) lane.queue->remove(*later_place);
      auto waiter = std::make_unique<Waiter>();
      waiter->node = Text(record.who.node.text);
      waiter->request = Text(record.who.request.text);
      waiter->info = Text(record.text);
      waiter->ticket = record.number;
      waiter->since = record.since;
      waiter->lease = record.lease;
      waiter->scope = has(kFlagResourceScope) ? Scope::resource : Scope::operation;
      waiter->monitor = has(kFlagMonitor);
      waiter->dereference = has(kFlagDereference);
      waiter->bonded = has(kFlagBonded);
      lane.queue->add(std::move(waiter));
      break;
    }
    case RecordKind::waiter_erased:
      if (Waiter* known = lane.queue ? lane.queue->find_ticket(record.number) : nullptr)
        lane.queue->remove(*known);
      break;
    case RecordKind::failures_set:
      lane.failures = record.attempt;
      lane.remember().last_error = texts.error;
      break;
    case RecordKind::failures_erased:
      lane.failures = 0;
      if (lane.memory) lane.memory->last_error = SharedText();
      break;
    case RecordKind::completion_set:
      lane.keep_completion({texts.error,
                            record.until,
                            has(kFlagSuccess),
                            has(kFlagPermanent),
                            {Token(record.number), record.attempt, texts.node, record.since, texts.result}});
      break;
    case RecordKind::completion_erased:
      lane.forget_completion();
      break;
    case RecordKind::released_set:
      lane.remember().released = {Token(record.number), Text(record.who.node.text), record.until};
      break;
    case RecordKind::ending_set:
      endings_of(lane).set(record.who, turnstile::ending_of(record, texts));
      break;
    case RecordKind::queue_ended:
      while (lane.has_waiters() && lane.queue->front().ticket <= record.number) {
        const std::unique_ptr<Waiter> ended = lane.queue->remove(lane.queue->front());
        if (record.until != Time{}) endings_of(lane).set(ended->who(), turnstile::ending_of(record, texts));
      }
      break;
    case RecordKind::endings_voided:
      if (lane.memory && lane.memory->endings) {
        // Written before records of this kind had a token: time is all there is.
        const bool old = record.number == 0;
        lane.memory->endings->erase_skips(old ? record.until : kNever,
                                          old ? kLastToken : Token(record.number));
      }
      break;
    case RecordKind::ending_erased:
      if (lane.memory && lane.memory->endings) lane.memory->endings->erase(record.who);
      break;
    default:
      break;
  }
  // A lane that has become empty again must not pile up while a long log is replayed.
  if (lane.queue && lane.queue->empty()) lane.queue.reset();
}

void Rules::tidy_loaded() {
  for (std::unique_ptr<Lane>* at = &resource_.lanes; *at;) {
    Lane& lane = **at;
    drop_retained(lane);
    if (lane.memory && lane.memory->empty()) lane.memory.reset();
    if (lane.empty())
      *at = std::move(lane.next);
    else
      at = &lane.next;
  }
}

// S31: leases, bonds and claims get their full time again; then whatever the log left half way goes on.
void Rules::finish_load() {
  for_each_lane([&](Lane& lane) {
    if (lane.queue) counters_.waiters.fetch_add(lane.queue->size(), std::memory_order_relaxed);
  });
  restart_times();
  for_each_lane([&](Lane& lane) {
    if (lane.completion && planted(Plant::keep_begins_anew))
      lane.completion->until += now_ - lane.completion->hold.at;
    drop_retained(lane);
  });
  advance();
}

void Rules::restart_times() {
  const Time bonds_until = later(now_, std::max(settings_.bond_grace, settings_.restored_bond_grace));
  for_each_lane([&](Lane& lane) {
    if (lane.hold.held()) {
      Hold& hold = lane.hold;
      if (hold.deadline == Deadline::unclaimed) hold.until = later(now_, settings_.claim_timeout);
      if (hold.deadline == Deadline::lease) start_deadline(hold);
      if (hold.monitor) hold.extra().bond_until = bonds_until;
      if (hold.extras && hold.extras->progress_at != kNever) hold.extras->progress_at = now_;
    }
    for (size_t i = 0; lane.queue && i < lane.queue->size(); ++i) {
      Waiter& waiter = lane.queue->at(i);
      waiter.heard_at = now_;
      if (waiter.bonded && !planted(Plant::reload_forgets_grace))
        lane.queue->set_leaves_at(waiter, bonds_until);
    }
  });
}

}  // namespace turnstile
