// Counts what the records of a journal amount to: how many holds, waiters and so on a server would know that
// had read them all. No rules are applied: records are absolute facts.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/effects.h"

namespace turnstile::cli {

// The name of a kind in a dump: the API's words.
std::string_view name_of(RecordKind kind);

// Threads: none of its own. Memory: a key for each fact that is true.
class JournalFacts {
 public:
  void apply(const Record& record);
  std::vector<std::pair<std::string, uint64_t>> counts() const;
  std::vector<std::pair<std::string, uint64_t>> by_kind() const;

 private:
  using Key = std::string;  // operation, resource and what else, with zeros between

  std::set<Key> holds_, completions_, failures_, references_;
  std::map<Key, std::set<uint64_t>> waiters_;  // tickets of a lane
  uint64_t highest_token_ = 0, latest_event_ = 0;
  std::map<RecordKind, uint64_t> kinds_;
};

}  // namespace turnstile::cli
