// Events as their readers get them: one JSON object (S29) in the framing of Server-Sent Events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/effects.h"

namespace turnstile {

std::string_view name_of(EventKind kind);

// The object behind `data:`. The first six fields are all that the oldest clients know.
void append_event_json(std::string& out, const Event& event);

// id: N / data: {...} / empty line. Without an id if it is 0: who reads it stays where it was.
void append_sse_event(std::string& out, uint64_t id, const Event& event);

// Tells a subscriber that it has missed events which are no longer known; it goes on after `id`. The only one
// with an `event:` line, so that a reader that knows nothing of it is not confused.
void append_sse_reset(std::string& out, uint64_t id);

// What is sent at once, and again while nothing happens, to show that the server lives.
inline constexpr std::string_view kSseComment = ": turnstile\n\n";

}  // namespace turnstile
