// From the bytes of a connection to complete requests: framing and limits, without sockets or clocks.
#pragma once

#include <cstdint>
#include <utility>

#include "http/buffers.h"
#include "http/chunked.h"
#include "http/head_parser.h"
#include "http/head_scan.h"

namespace turnstile::http {

// What the reader has found at the front of a buffer.
struct Incoming {
  Request request;
  bool http_1_1 = false;
  bool keep_alive = false;
  // When it is not a request but a reason to refuse it:
  unsigned status = 0;
  const char* problem = nullptr;
};

// Takes requests off an InBuffer, one after the other, each when it is complete.
//
// Not its job: reading, answering, time-outs (phase() says what a time-out would be about).
// Threads: none; part of a connection.
// Invariant: the same bytes give the same requests and refusals, in whatever pieces they come.
class RequestReader {
 public:
  enum class Result { incomplete, complete, refused };
  enum class Phase : uint8_t { between, head, body };

  // Looks at what is in `in`. After `complete` the caller handles `incoming.request` and then calls finish().
  Result next(InBuffer& in, const Limits& limits, Incoming& incoming);
  void finish(InBuffer& in);

  Phase phase() const { return phase_; }
  // How large the buffer may have to become for the request that is being read.
  size_t wanted(const Limits& limits) const { return limits.max_head + body_limit_ + InBuffer::kStart; }
  // Whether the client waits for "100 Continue" before it sends the body. Says so once.
  bool take_continue() { return std::exchange(owes_continue_, false); }
  // Takes the remains of chunk sizes out of the buffer; only when no read is under way into it.
  void compact(InBuffer& in);

 private:
  Result read_head(InBuffer& in, const Limits& limits, Incoming& incoming);
  Result read_body(InBuffer& in, Incoming& incoming);
  Result deliver(InBuffer& in, const Head& head, Incoming& incoming) const;
  static Result refuse(Incoming& incoming, unsigned status, const char* problem);

  HeadScan scan_;
  Phase phase_ = Phase::between;
  bool is_chunked_ = false;
  bool owes_continue_ = false;
  bool skipped_line_ = false;
  uint32_t body_limit_ = 0;
  size_t body_size_ = 0;  // of Content-Length
  ChunkedBody chunked_;
};

}  // namespace turnstile::http
