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

bool Rules::insert_reference(NodeId node) {
  if (!keeps_references()) return false;
  if (!resource_.references) resource_.references = std::make_unique<std::vector<Text>>();
  std::vector<Text>& nodes = *resource_.references;
  const auto at = place_of(nodes, node.text);
  if (at != nodes.end() && at->view() == node.text) return false;
  nodes.insert(at, Text(node.text));
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
  if (nodes.empty()) resource_.references.reset();
  return true;
}

void Rules::clear_references() {
  if (!resource_.references) return;
  for (const Text& node : *resource_.references) record(reference_record(RecordKind::reference_erased, node));
  resource_.references.reset();
}

std::vector<std::string_view> Rules::reference_names() {
  std::vector<std::string_view> names;
  if (!resource_.references) return names;
  names.reserve(resource_.references->size());
  for (const Text& node : *resource_.references) names.push_back(out_.keep(node));
  return names;
}

ReferencesAnswer Rules::references() {
  ReferencesAnswer answer;
  if (!keeps_references()) {
    answer.refusal = Refusal::references_off;
    return answer;
  }
  answer.nodes = reference_names();
  answer.count = uint32_t(answer.nodes.size());
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
  const bool changed = insert_reference(node);
  ReferencesAnswer answer = references();
  answer.changed = changed;
  return answer;
}

ReferencesAnswer Rules::release_reference(NodeId node) {
  const bool changed = keeps_references() && erase_reference(node);
  ReferencesAnswer answer = references();
  answer.changed = changed;
  return answer;
}

}  // namespace turnstile
