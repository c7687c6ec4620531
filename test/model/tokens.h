// Which token of the engine's is which of the model's. Both grow, but the engine's may jump (a restart goes
// on in the next block) and two resources that expire in one call may be served in either order.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "plain.h"

namespace turnstile::model {

class Tokens {
 public:
  // The grants of one step on one resource, in order.
  void learn(const Step& model, const Step& engine) {
    const std::vector<uint64_t> ours = granted(model), theirs = granted(engine);
    for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
      to_model_[theirs[i]] = ours[i];
      to_engine_[ours[i]] = theirs[i];
    }
  }

  // A token that nobody was granted stays what it is.
  Token to_engine(Token token) const {
    const auto found = to_engine_.find(uint64_t(token));
    return found == to_engine_.end() ? token : Token(found->second);
  }

  void to_model(PlainLock& answer) const {
    translate(answer.token);
    for (PlainHolder& holder : answer.holders) translate(holder.token);
  }
  void to_model(std::optional<PlainLock>& answer) const {
    if (answer) to_model(*answer);
  }
  void to_model(PlainStatus& answer) const {
    translate(answer.token);
    if (answer.holder) translate(answer.holder->token);
  }
  void to_model(std::vector<PlainEvent>& events) const {
    for (PlainEvent& event : events) translate(event.token);
  }
  void to_model(Step& step) const {
    to_model(step.events);
    for (PlainWake& wake : step.wakes) to_model(wake.answer);
  }
  template <class T>
  void to_model(T&) const {}  // other answers tell no token

 private:
  static std::vector<uint64_t> granted(const Step& step) {
    std::vector<uint64_t> tokens;
    for (const PlainEvent& event : step.events)
      if (event.kind == EventKind::granted) tokens.push_back(event.token);
    return tokens;
  }
  void translate(uint64_t& token) const {
    if (token == 0) return;
    const auto found = to_model_.find(token);
    token = found == to_model_.end() ? UINT64_MAX : found->second;
  }

  std::map<uint64_t, uint64_t> to_model_, to_engine_;
};

}  // namespace turnstile::model
