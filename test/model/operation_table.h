// Section 4 of docs/semantics.md once more: which rules an operation has.
//
// Written from that table and not from the engine's defaults, so that a slip in either is seen.
#pragma once

#include <optional>
#include <string>

#include "engine/settings.h"

namespace turnstile::model {

struct OperationRow {
  OnSuccess on_success;
  OnReferences references;
  Guard guard;
  bool voids;
};

class OperationTable {
 public:
  // `own`: what --operation says of one operation, which may be one of the table's.
  explicit OperationTable(bool update_requires_no_ref = false, std::optional<OperationRules> own = {})
      : update_requires_no_ref_(update_requires_no_ref), own_(std::move(own)) {}

  OperationRow of(const std::string& name) const {
    if (own_ && own_->name == name) return {own_->on_success, own_->references, own_->guard, own_->voids};
    if (name == "pull") return {OnSuccess::share, OnReferences::add, Guard::skip, true};
    if (name == "delete") return {OnSuccess::share, OnReferences::clear, Guard::refuse, true};
    if (name == "once") return {OnSuccess::share, OnReferences::keep, Guard::none, false};
    const Guard guard = update_requires_no_ref_ ? Guard::refuse : Guard::none;
    if (name == "update") return {OnSuccess::handoff, OnReferences::keep, guard, true};
    return {OnSuccess::handoff, OnReferences::keep, Guard::none, false};
  }

 private:
  bool update_requires_no_ref_;
  std::optional<OperationRules> own_;
};

}  // namespace turnstile::model
