// See arbiter.h.
#include "content/arbiter.h"

#include "base/log.h"

namespace turnstile::content {

bool Removal::carry_out(const Digest& digest, const std::function<Outcome<void>()>& remove) const {
  // A process that has slept since it was granted could take away what another node has pulled meanwhile.
  const Outcome<void> gone =
      ticket->still_valid() ? remove() : fail(ErrorClass::unavailable, "the right to remove it has run out");
  if (gone) {
    ticket->succeeded();
    return true;
  }
  log_warning("a blob stays behind", {{"digest", digest.text()}, {"error", gone.error().message}});
  ticket->failed(gone.error().message);
  return false;
}

}  // namespace turnstile::content
