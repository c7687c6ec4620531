// Server-Sent Events out of bytes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace turnstile::client {

struct SseEvent {
  std::string id, name, data;
};

// Takes bytes in pieces of any size. Comments and unknown fields are passed over; lines end with LF, CR or
// both. `id` is the last one sent, also for events without one, as the standard says.
//
// Invariant: keeps at most kMaxEvent bytes. Threads: one at a time.
class SseParser {
 public:
  static constexpr size_t kMaxEvent = 1 << 20;

  // False from `on_event`: enough, the rest is dropped.
  using OnEvent = std::function<bool(const SseEvent&)>;
  enum class Fed { more, enough, too_long };
  Fed feed(std::string_view bytes, const OnEvent& on_event);

 private:
  Fed end_of_line(const OnEvent& on_event);
  void field(std::string_view line);

  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;
};

}  // namespace turnstile::client
