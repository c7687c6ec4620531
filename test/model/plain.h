// Answers, events and wakes with strings of their own: what the model gives out and what the engine's are
// turned into, so that the two can be compared, printed and hashed.
//
// The model may allow more than one answer. `holders` of the model names every hold that may be told as the
// one in the way, because semantics.md does not say which of several it is; the engine's has one or none.
// Where the engine writes a sentence for people, the model has kAnySentence.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/answer.h"
#include "engine/effects.h"

namespace turnstile::model {

inline constexpr const char* kAnySentence = "*";

struct Who {
  std::string node;
  std::string request;
  friend auto operator<=>(const Who&, const Who&) = default;
};

struct Lane {
  std::string operation;
  std::string resource;
  friend auto operator<=>(const Lane&, const Lane&) = default;
};

// S39: who has done the work that is skipped, and what it left. Nobody: not known.
struct PlainDone {
  std::string node;
  Duration ago{};
  std::string result;
  friend bool operator==(const PlainDone&, const PlainDone&) = default;
};

struct PlainHolder {
  std::string operation;
  Who who;
  uint64_t token = 0;
  Time since{};
  Duration lease{};
  std::optional<Progress> progress;
  std::string info;
  friend bool operator==(const PlainHolder&, const PlainHolder&) = default;
};

struct PlainLock {
  LockState state = LockState::refused;
  Refusal refusal = Refusal::none;
  uint64_t token = 0;
  uint32_t attempt = 0;
  std::string previous_error;
  uint32_t position = 0;
  std::vector<PlainHolder> holders;
  std::string error;
  std::vector<std::string> references;
  bool bonded = false;
  PlainDone done{};
};

struct PlainUnlock {
  Refusal refusal = Refusal::none;
  bool already = false;
  std::string next;
  std::vector<std::string> waiters;
  std::optional<Duration> keep{};
  friend bool operator==(const PlainUnlock&, const PlainUnlock&) = default;
};

struct PlainRenew {
  Refusal refusal = Refusal::none;
  Duration lease{};
  friend bool operator==(const PlainRenew&, const PlainRenew&) = default;
};

struct PlainBreak {
  Refusal refusal = Refusal::none;
  std::string node;
  friend bool operator==(const PlainBreak&, const PlainBreak&) = default;
};

struct PlainReferences {
  Refusal refusal = Refusal::none;
  bool changed = false;
  uint32_t count = 0;
  std::vector<std::string> nodes;
  friend bool operator==(const PlainReferences&, const PlainReferences&) = default;
};

struct PlainQueued {
  Who who;
  uint32_t position = 0;
  Time since{};
  std::string info;
  friend bool operator==(const PlainQueued&, const PlainQueued&) = default;
};

struct PlainCompletion {
  std::string node;
  bool success = false;
  bool permanent = false;
  std::string error;
  Time at{};
  std::string result{};
  friend bool operator==(const PlainCompletion&, const PlainCompletion&) = default;
};

struct PlainStatus {
  Lane lane;
  LaneState state = LaneState::idle;
  std::optional<PlainHolder> holder;
  std::vector<PlainQueued> queue;
  uint32_t queue_length = 0;
  std::optional<PlainCompletion> completion;
  std::vector<std::string> references;
  std::vector<std::string> waiters;
  bool acquired = false;
  uint64_t token = 0;
  uint32_t attempt = 0;
  uint32_t position = 0;
  bool completed = false;
  bool success = false;
  std::string error;
  PlainDone done{};
  friend bool operator==(const PlainStatus&, const PlainStatus&) = default;
};

struct PlainEvent {
  EventKind kind{};
  Lane lane;
  Who who;
  Time at{};
  uint64_t token = 0;
  uint32_t attempt = 0;
  bool permanent = false;
  std::string error;
  std::string reason;
  std::string result{};
  friend bool operator==(const PlainEvent&, const PlainEvent&) = default;
};

struct PlainWake {
  uint64_t poll = 0;
  PlainLock answer;
};

// What one step on one resource causes.
struct Step {
  std::vector<PlainEvent> events;
  std::vector<PlainWake> wakes;
};

// Whether the engine's answer is one that the model allows.
template <class T>
bool agrees(const T& model, const T& engine) {
  return model == engine;
}
bool agrees(const PlainLock& model, const PlainLock& engine);
bool agrees(const std::optional<PlainLock>& model, const std::optional<PlainLock>& engine);
bool agrees(const PlainStatus& model, const PlainStatus& engine);
bool agrees(const PlainEvent& model, const PlainEvent& engine);
bool agrees(const std::vector<PlainEvent>& model, const std::vector<PlainEvent>& engine);
// Events in order; wakes as a set, because polls of one waiter have no order among themselves.
bool agrees(const Step& model, const Step& engine);

std::string show(bool value);
std::string show(const std::optional<PlainLock>& answer);
std::string show(const PlainHolder& holder);
std::string show(const PlainLock& answer);
std::string show(const PlainUnlock& answer);
std::string show(const PlainRenew& answer);
std::string show(const PlainBreak& answer);
std::string show(const PlainReferences& answer);
std::string show(const PlainStatus& answer);
std::string show(const PlainEvent& event);
std::string show(const PlainWake& wake);
std::string show(const Step& step);
std::string show(const std::vector<PlainEvent>& events);
std::string show(const std::vector<PlainStatus>& list);

}  // namespace turnstile::model
