// What a newcomer should hear about the operation that was typed: a name that no server knows is a plain
// mutex, and nothing fails when somebody meant another one. Everybody just runs the command.
#pragma once

#include <string>
#include <string_view>

namespace turnstile::cli {

// Whether it is one of the names that every server knows.
bool is_known_operation(std::string_view type);

// The known name that this one may have been meant to be: it differs in case or by one character. Else empty.
std::string_view meant_operation(std::string_view type);

// Before it is asked for; empty: nothing to say. `everybody` does what with a plain mutex: "runs the
// command".
std::string hint_about(std::string_view type, std::string_view everybody);
// When somebody has waited, and then ran it although nobody had failed before; empty: nothing to say.
std::string hint_after_waiting(std::string_view type);

}  // namespace turnstile::cli
