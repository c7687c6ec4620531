// See copying.h.
#include "content/copying.h"

#include <vector>

#include "content/hasher.h"

namespace turnstile::content {

Outcome<bool> copy_verified(int from, int to, const Digest& digest,
                            const std::function<void(size_t bytes)>& read) {
  constexpr size_t kPiece = 1024 * 1024;
  std::vector<char> piece(kPiece);
  Hasher hasher(digest.algorithm());
  for (int64_t offset = 0;;) {
    const Outcome<size_t> got = read_at(from, offset, piece);
    if (!got) return std::unexpected(got.error());
    if (*got == 0) break;
    const std::string_view bytes(piece.data(), *got);
    hasher.update(bytes);
    if (const Outcome<void> written = write_at(to, offset, bytes); !written)
      return std::unexpected(written.error());
    offset += int64_t(*got);
    read(*got);
  }
  return hasher.digest() == digest;
}

}  // namespace turnstile::content
