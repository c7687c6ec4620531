// Who may do what: the one table, asked of parsed commands.
//
// Whoever carries out a command (a single request, an item of a batch) asks here first. A new command or path
// does not compile until it has its line in may.cc.
#pragma once

#include <string>

#include "access/principal.h"
#include "api/command.h"
#include "api/paths.h"

namespace turnstile::access {

// What stands in the way.
enum class Barrier : uint8_t { none, role, node, resource };

// Of lists and streams this says only whether they may be asked for; what the caller may not see is left out
// of them by its Principal::resources.
Barrier may(const Principal& who, const Command& command);

// The calls about the server itself. What is not one of them is a command's, and decided by the command.
Barrier may(const Principal& who, Path path);
// Whether one need not say who one is. `open_metrics`: the setting of that name.
bool is_for_everybody(Path path, bool open_metrics);

// What the command is about, for people: empty where it is about none in particular.
struct Subject {
  std::string_view resource, node;
};
Subject subject_of(const Command& command);

// What is wrong and what to do. Names the credential, never its secret.
std::string explain(Barrier barrier, const Principal& who, const Subject& subject);

}  // namespace turnstile::access
