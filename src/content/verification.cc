// See verification.h.
#include "content/verification.h"

#include <vector>

#include "content/hasher.h"

namespace turnstile::content {

Outcome<bool> is_intact(const OpenBlob& blob, const Digest& digest,
                        const std::function<bool(size_t bytes)>& pause) {
  constexpr size_t kPiece = 256 * 1024;
  std::vector<char> piece(kPiece);
  Hasher hasher(digest.algorithm());
  for (int64_t offset = 0;;) {
    const Outcome<size_t> got = read_at(blob.fd.get(), offset, piece);
    if (!got) return std::unexpected(got.error());
    if (*got == 0) break;
    hasher.update({piece.data(), *got});
    offset += int64_t(*got);
    if (pause && !pause(*got)) return fail(ErrorClass::unavailable, "stopped");
  }
  return hasher.digest() == digest;
}

}  // namespace turnstile::content
