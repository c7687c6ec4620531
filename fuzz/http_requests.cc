// A connection's bytes as the request reader sees them: heads, bodies, pipelines. What must hold:
// - the same bytes give the same requests and the same refusal, in whatever pieces they come;
// - no request is above the limits, and the padding behind its body can be read;
// - the buffer always has room for what may still come.
#include <fmt/format.h>

#include <vector>

#include "http/request_reader.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

using http::InBuffer;
using http::Incoming;
using http::RequestReader;
using Result = RequestReader::Result;

// Small, so that an input can go beyond them.
http::Limits small_limits() {
  http::Limits limits;
  limits.max_head = 256;
  limits.max_body = 64;
  limits.max_batch_body = 128;
  return limits;
}

std::string shown(const Incoming& incoming, const http::Limits& limits) {
  const http::Request& r = incoming.request;
  TS_CHECK(r.body.size() <= (r.path == limits.large_body_path ? limits.max_batch_body : limits.max_body),
           "a body is within its limit");
  unsigned sum = 0;
  for (size_t i = 0; i < http::kBodyPadding; ++i) sum += uint8_t(r.body.data()[r.body.size() + i]);
  TS_CHECK(sum <= http::kBodyPadding * 255, "padding can be read");
  return fmt::format("{} {}?{} host={} origin={} authorization={} last={} keep={} 1.1={}\n{}", r.method_text,
                     r.path, r.query, r.host, r.origin, r.authorization, r.last_event_id, incoming.keep_alive,
                     incoming.http_1_1, r.body);
}

// As a connection does it.
class Reading {
 public:
  // False: it was refused.
  bool feed(std::string_view bytes) {
    while (!bytes.empty()) {
      reader_.compact(in_);
      in_.prepare(reader_.wanted(limits_));
      TS_CHECK(in_.room() > 0, "a request within its limits fits the buffer");
      const std::string_view part = bytes.substr(0, in_.room());
      std::memcpy(in_.tail(), part.data(), part.size());
      in_.commit(part.size());
      bytes.remove_prefix(part.size());
      if (!take_all()) return false;
    }
    return true;
  }
  const std::vector<std::string>& seen() const { return seen_; }

 private:
  bool take_all() {
    Incoming incoming;
    for (;;) {
      switch (reader_.next(in_, limits_, incoming)) {
        case Result::incomplete:
          return true;
        case Result::refused:
          seen_.push_back(fmt::format("{} {}", incoming.status, incoming.problem));
          return false;
        case Result::complete:
          seen_.push_back(shown(incoming, limits_));
          reader_.finish(in_);
      }
    }
  }

  const http::Limits limits_ = small_limits();
  InBuffer in_;
  RequestReader reader_;
  std::vector<std::string> seen_;
};

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t longest = input.byte();
  const std::string_view connection = input.rest();

  Reading at_once, piecewise;
  at_once.feed(connection);
  in_pieces(connection, longest, [&](std::string_view piece) { return piecewise.feed(piece); });
  TS_CHECK(at_once.seen() == piecewise.seen(),
           "a connection is read alike in whatever pieces its bytes come");
}

}  // namespace turnstile::fuzz
