// An event as bytes in memory: a fixed head, then its seven texts. The ring and the batches that are copied
// out of it hold events in this form, so that keeping one takes no allocation and copying one is a single
// memcpy.
//
// Never written to disk or the network; the layout may change with any build.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/effects.h"

namespace turnstile {

size_t stored_size(const Event& event);

// Writes exactly stored_size(event) bytes.
void store_event(const Event& event, char* out);

// Only the lane, for those who look at many events and want few.
LaneName load_lane(std::string_view stored);

// The event; its texts are views into `stored`.
Event load_event(std::string_view stored);

}  // namespace turnstile
