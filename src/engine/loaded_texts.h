// Texts that many records of a journal repeat, so that what they are loaded into shares them.
#pragma once

#include "base/shared_text.h"
#include "engine/kept_result.h"

namespace turnstile {

// Of the last record that had one of each.
struct LoadedTexts {
  SharedText error, node;
  KeptResult result;
};

}  // namespace turnstile
