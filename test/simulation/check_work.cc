// Work that is done once, and references.
#include <algorithm>

#include "checks.h"

namespace turnstile::sim {

// Whether the call can have taken effect after `from` began and before `to` was over.
bool Checker::may_be_between(const Call& call, Time from, Time to) {
  return call.invoked <= to && (!call.has_returned() || call.returned >= from);
}

bool Checker::is_success(const Call& call, std::string_view type) const {
  return call.kind == CallKind::unlock && call.type == type && call.success && may_have_worked(call);
}

// Work is done once: who comes later skips, until something has made it undone; and nobody skips what was
// not done.
void Checker::done_once() {
  for (const auto& [resource, calls] : by_resource_) {
    const Call* deleted = nullptr;  // the latest delete that surely was done
    for (const Call* call : calls) {
      if (call->kind != CallKind::lock || !call->has_returned()) continue;
      if (call->state == "acquired" && (call->type == "pull" || call->type == "once"))
        done_again(*call, calls);
      if (call->type != "pull") continue;
      deleted = nullptr;
      for (const Call* other : calls)
        if (is_success(*other, "delete") && other->has_returned() && !other->already &&
            other->returned < first_ask(*call) && (deleted == nullptr || other->invoked > deleted->invoked))
          deleted = other;
      if (call->state == "skipped") skipped(*call, calls, deleted);
    }
  }
}

// When its requester first asked.
Time Checker::first_ask(const Call& call) const {
  for (const Call* other : calls_of(call.resource))
    if (other->kind == CallKind::lock && other->type == call.type && other->who() == call.who())
      return other->invoked;
  return call.invoked;
}

void Checker::skipped(const Call& call, const Calls& calls, const Call* deleted) {
  const Time from = deleted != nullptr ? deleted->invoked : what_.start;
  for (const Call* other : calls) {
    if (other == &call || !may_be_between(*other, from, call.returned)) continue;
    if (is_success(*other, "pull")) return;
    if (other->kind == CallKind::add_reference && (!other->has_returned() || other->status == 200)) return;
    // Who skips uses the content, too. Its own reason was looked at when it did.
    if (deleted != nullptr && other->kind == CallKind::lock && other->type == "pull" &&
        (!other->has_returned() || (other->state == "skipped" && other->returned < call.returned)))
      return;
    if (deleted != nullptr && other->kind == CallKind::status && other->type == "pull" &&
        !other->node.empty())
      return;
  }
  violation("skipped what nobody has done{}: {}", deleted != nullptr ? " since it was deleted" : "",
            show(call));
}

void Checker::done_again(const Call& call, const Calls& calls) {
  const auto found = grants_.find(call.told_token);
  if (found == grants_.end() || found->second.learned != call.returned) return;
  const Grant& grant = found->second;
  for (const Call* done : calls) {
    if (!is_success(*done, call.type) || !done->has_returned() || done->already || done->token == 0) continue;
    if (done->returned >= grant.invoked || done->token == grant.token) continue;
    if (std::min(later(done->invoked, keep_of(*done)), what_.clock_set) <= call.returned) continue;
    const bool undone = std::ranges::any_of(calls, [&](const Call* other) {
      if (!may_be_between(*other, done->invoked, call.returned)) return false;
      for (const std::string_view voids : {"pull", "delete", "update"})
        if (voids != call.type && is_success(*other, voids)) return true;
      if (other->kind == CallKind::forget && other->type == call.type) return true;
      return other->kind == CallKind::unlock && other->type == call.type && other != done &&
             may_have_worked(*other);
    });
    if (!undone) violation("done twice: {}; and then {}", show(*done), show(call));
  }
}

// The set of nodes that use a resource is what was acknowledged.
void Checker::references() {
  if (!what_.settings.server_keeps_references) return;
  for (const auto& [resource, calls] : by_resource_)
    for (const Call* look : calls)
      if (look->kind == CallKind::references && look->has_returned() && look->status == 200 &&
          !look->more_nodes)
        for (const std::string& node : nodes_of(calls)) reference(*look, node, calls);
}

std::set<std::string> Checker::nodes_of(const Calls& calls) const {
  std::set<std::string> nodes;
  for (const Call* call : calls)
    if (!call->node.empty()) nodes.insert(call->node);
  return nodes;
}

bool Checker::adds(const Call& call, const std::string& node) {
  if (call.node != node) return false;
  if (call.kind == CallKind::add_reference) return !call.has_returned() || call.status == 200;
  if (call.type != "pull") return false;
  if (call.kind == CallKind::unlock) return call.success && may_have_worked(call) && !call.already;
  if (call.kind == CallKind::lock) return !call.has_returned() || call.state == "skipped";
  return call.kind == CallKind::status;  // it may tell of a skip
}

bool Checker::drops(const Call& call, const std::string& node) {
  if (call.kind == CallKind::unlock && call.type == "delete")
    return call.success && may_have_worked(call) && !call.already;
  if (call.node != node) return false;
  if (call.kind == CallKind::lock && call.type == "delete") return call.dereference;
  return call.kind == CallKind::release_reference || call.kind == CallKind::release_node;
}

// Of those that may add, the ones that did.
bool Checker::surely_adds(const Call& call) {
  return call.has_returned() && call.status == 200 && call.kind != CallKind::status;
}

bool Checker::surely_drops(const Call& call) {
  return call.has_returned() && call.status == 200 && call.kind != CallKind::lock;
}

void Checker::reference(const Call& look, const std::string& node, const Calls& of_resource) {
  Calls calls = of_resource;
  for (const Call* call : calls_of("")) calls.push_back(call);  // release_node names no resource
  const bool listed = std::ranges::find(look.nodes, node) != look.nodes.end();
  for (const Call* call : calls) {
    if (!call->has_returned() || call->returned >= look.invoked) continue;
    const bool added = adds(*call, node) && surely_adds(*call);
    const bool dropped = drops(*call, node) && surely_drops(*call);
    if (!(listed ? dropped : added)) continue;
    const bool undone = std::ranges::any_of(calls, [&](const Call* other) {
      if (other == call || other->invoked > look.returned) return false;
      if (!listed && deletes_node(*other, node)) return true;
      if (!may_be_between(*other, call->invoked, look.returned)) return false;
      return listed ? adds(*other, node) : drops(*other, node);
    });
    if (!undone)
      violation("a reference of {} was {}: {}; but {}", node, listed ? "kept" : "lost", show(*call),
                show(look));
  }
}

// A waiter's dereference is applied again when its turn comes (S19), whenever that is.
bool Checker::deletes_node(const Call& call, const std::string& node) {
  return call.type == "delete" && call.node == node && call.dereference;
}

}  // namespace turnstile::sim
