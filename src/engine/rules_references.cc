// Section 5 of docs/semantics.md: which nodes use the resource.
#include <algorithm>

#include "engine/rules.h"

namespace turnstile {
namespace {

auto place_of(std::vector<Text>& nodes, std::string_view node) {
  return std::lower_bound(nodes.begin(), nodes.end(), node,
                          [](const Text& each, std::string_view wanted) { return each.view() < wanted; });
}

}  // namespace

bool Rules::has_reference(NodeId node) const {
  if (!resource_.references) return false;
  const auto at = place_of(*resource_.references, node.text);
  return at != resource_.references->end() && at->view() == node.text;
}

// Not asked for those who must be counted whatever it costs: whoever has done the work, or was told to skip
// after it had waited.
bool Rules::has_room_for_reference(NodeId node) const {
  if (counters_.references.load(std::memory_order_relaxed) < settings_.max_references) return true;
  return !keeps_references() || has_reference(node);
}

bool Rules::insert_reference(NodeId node) {
  if (!keeps_references()) return false;
  if (!resource_.references) resource_.references = std::make_unique<std::vector<Text>>();
  std::vector<Text>& nodes = *resource_.references;
  const auto at = place_of(nodes, node.text);
  if (at != nodes.end() && at->view() == node.text) return false;
  nodes.insert(at, Text(node.text));
  counters_.references.fetch_add(1, std::memory_order_relaxed);
  named_.reset();
  record(reference_record(RecordKind::reference_set, node.text));
  return true;
}

bool Rules::erase_reference(NodeId node) {
  if (!resource_.references) return false;
  std::vector<Text>& nodes = *resource_.references;
  const auto at = place_of(nodes, node.text);
  if (at == nodes.end() || at->view() != node.text) return false;
  record(reference_record(RecordKind::reference_erased, node.text));
  nodes.erase(at);
  counters_.references.fetch_sub(1, std::memory_order_relaxed);
  named_.reset();
  if (nodes.empty()) resource_.references.reset();
  return true;
}

void Rules::clear_references() {
  if (!resource_.references) return;
  if (!planted(Plant::cleared_references_count))
    counters_.references.fetch_sub(resource_.references->size(), std::memory_order_relaxed);
  for (const Text& node : *resource_.references) record(reference_record(RecordKind::reference_erased, node));
  resource_.references.reset();
  named_.reset();
}

// Once for a step, however many waiters it refuses with them.
NodesView Rules::reference_names(size_t names) {
  if (!resource_.references) return {};
  if (names < kMostNamed) {
    ReferencesCommand few;
    few.limit = uint32_t(names);
    const ReferencesAnswer answer = references(few);
    return {answer.count, answer.nodes};
  }
  if (named_) return *named_;
  ReferencesCommand first;
  first.limit = kMostNamed;
  const ReferencesAnswer answer = references(first);
  named_ = {answer.count, answer.nodes};
  return *named_;
}

ReferencesAnswer Rules::references(const ReferencesCommand& command) {
  ReferencesAnswer answer;
  if (!keeps_references()) {
    answer.refusal = Refusal::references_off;
    return answer;
  }
  if (!resource_.references) return answer;
  std::vector<Text>& nodes = *resource_.references;
  auto from = place_of(nodes, command.after.text);
  if (from != nodes.end() && from->view() == command.after.text) ++from;
  const size_t left = size_t(nodes.end() - from);
  const auto names = out_.keep_views(std::min<size_t>(left, command.limit));
  for (std::string_view& name : names) name = out_.keep(*from++);
  answer.count = uint32_t(nodes.size());
  answer.nodes = names;
  answer.more = left > names.size();
  return answer;
}

ReferencesAnswer Rules::changed_references(bool changed) {
  ReferencesCommand first;
  first.limit = kMostNamed;
  ReferencesAnswer answer = references(first);
  answer.changed = changed;
  return answer;
}

ReferencesAnswer Rules::add_reference(NodeId node) {
  bool clearing = false;  // S19: who is about to delete must not be surprised
  for_each_lane([&](Lane& lane) {
    clearing = clearing || (lane.hold.held() && lane.rules().references == OnReferences::clear);
  });
  if (clearing && keeps_references()) {
    ReferencesAnswer busy;
    busy.refusal = Refusal::busy;
    return busy;
  }
  if (!has_room_for_reference(node)) {
    ReferencesAnswer full;
    full.refusal = Refusal::too_many_references;
    return full;
  }
  return changed_references(insert_reference(node));
}

ReferencesAnswer Rules::release_reference(NodeId node) {
  return changed_references(keeps_references() && erase_reference(node));
}

}  // namespace turnstile
