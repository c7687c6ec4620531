// Hashing as data arrives: OpenSSL's SHA-2, which uses the processor's own instructions.
#pragma once

#include <memory>
#include <string_view>

#include "content/digest.h"

struct evp_md_ctx_st;

namespace turnstile::content {

// The hash of all bytes given so far.
//
// Threads: one at a time. Cost: digest() copies the state (some hundred bytes), so that it may be asked for
// after every message and the hashing goes on.
class Hasher {
 public:
  explicit Hasher(Algorithm algorithm);
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();

  void update(std::string_view bytes);
  void reset();
  Digest digest() const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_md_ctx_st, Free>;

  Algorithm algorithm_;
  Context context_;
  mutable Context copy_;  // of the state, for digest(); kept to save an allocation each time
};

}  // namespace turnstile::content
