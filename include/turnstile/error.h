// How a call of the library fails. Nothing here is thrown: every call that can fail returns an Expected.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "turnstile/export.h"

namespace turnstile {
inline namespace v1 {  // the library's binary interface; the server's own types have names like these

// Each class needs a different reaction of the caller.
enum class ErrorCode {
  invalid,          // the call itself is wrong (a name too long, a bad URL): fix it, never repeat it
  busy,             // another requester holds the lane, and this call was not to wait
  timed_out,        // the caller's deadline passed while waiting; the place in the queue is given up
  cancelled,        // the caller's stop token was used; the place in the queue is given up
  refused,          // a rule or a limit forbids it; `reason` says which (`referenced`, …)
  failed,           // another node reported a permanent failure (S12)
  lost,             // the hold is no longer yours: expired, broken, or it never was
  unauthenticated,  // the server wants a credential, or another one; or this one may not do that
  unavailable,      // no server answered in time, after all retries: what the call did is not known
  not_turnstile,    // what answered is not a Turnstile server, or its certificate is not trusted
  storage,          // a database or file of our own cannot be read or written
  exhausted,        // this process cannot start more threads; what had been granted was released
};

TURNSTILE_API std::string_view to_string(ErrorCode code);

struct ClientError {
  ErrorCode code = ErrorCode::unavailable;
  std::string message{};             // one sentence for people, with what to do
  std::string reason{};              // the server's own `code`, if it sent one
  std::vector<std::string> nodes{};  // with `referenced`: the nodes in the way
};

template <class T>
using Expected = std::expected<T, ClientError>;

}  // namespace v1
}  // namespace turnstile
