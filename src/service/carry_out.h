// The one place that carries out commands, for whoever asks.
#pragma once

#include <string>

#include "api/command.h"
#include "engine/engine.h"

namespace turnstile {

// What a command came to.
struct CarriedOut {
  unsigned status = 200;
  bool waits = false;   // a long poll: nothing was written, the answer follows as a Wake (S24)
  bool bonded = false;  // the connection is a bond of the requester's now (S21)
  bool freed = false;   // the requester's hold has ended by this command
};

// Applies the rules, appends the answer to `body` as JSON, and logs the decision. What else follows is in
// `effects`. Of the commands only those that are OneStep (checked).
CarriedOut carry_out(Engine& engine, const Command& command, Time now, Effects& effects, std::string& body,
                     AnswerForm form = AnswerForm::alone);

}  // namespace turnstile
