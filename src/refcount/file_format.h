// The bytes of a reference count file (docs/refcount-format.md), and what they mean. No disk here.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "turnstile/ref_count.h"

namespace turnstile::refcount {

// Immutable counts, so that a reader may go on with the ones of a moment while the next are being made.
using Counts = std::map<std::string, std::shared_ptr<const ReferenceCount>>;

inline constexpr uint32_t kRefCountFormatVersion = 1;

// Why bytes are not a reference count file.
struct FormatFault {
  uint64_t at = 0;  // the byte at which what is wrong begins
  std::string what;
};

std::string encode_counts(const Counts& counts);
// Trusts nothing: whatever encode_counts() cannot have made is a fault.
std::expected<Counts, FormatFault> decode_counts(std::string_view bytes);

}  // namespace turnstile::refcount
