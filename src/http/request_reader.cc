#include "http/request_reader.h"

#include "base/check.h"

namespace turnstile::http {
namespace {

constexpr char kTlsGreeting = 0x16;  // the type of a handshake's record

}  // namespace

RequestReader::Result RequestReader::next(InBuffer& in, const Limits& limits, Incoming& incoming) {
  return phase_ == Phase::body ? read_body(in, incoming) : read_head(in, limits, incoming);
}

RequestReader::Result RequestReader::read_head(InBuffer& in, const Limits& limits, Incoming& incoming) {
  if (in.empty()) return Result::incomplete;
  phase_ = Phase::head;
  if (!skipped_line_ && !scan_.started() && in.view().front() == '\r') {
    // One empty line before a request is to be ignored (RFC 9112, 2.2).
    if (in.size() == 1) return Result::incomplete;
    if (in.view()[1] != '\n') return refuse(incoming, 400, "The request line is not well formed.");
    in.consume(2);
    skipped_line_ = true;
    if (in.empty()) return Result::incomplete;
  }
  // No further than a head may be long: what follows must not decide between two refusals, or it would depend
  // on how much of it has come.
  const HeadScan::Result found = scan_.scan(in.view().substr(0, limits.max_head));
  if (found == HeadScan::Result::malformed) {
    if (in.view().front() == kTlsGreeting)
      return refuse(incoming, 400, "This port does not speak TLS: ask it with http:// and not https://.");
    return refuse(incoming, 400, "The request head has a line that is folded or does not end with CR LF.");
  }
  if (found == HeadScan::Result::incomplete) {
    if (in.size() > limits.max_head)
      return refuse(incoming, 431, "The request head is too large: send fewer or shorter headers.");
    return Result::incomplete;
  }
  const size_t head_size = scan_.size();

  Head head;
  if (const char* problem = parse_head(in.view().substr(0, head_size), head))
    return refuse(incoming, 400, problem);
  body_limit_ = uint32_t(head.path == limits.large_body_path ? limits.max_batch_body : limits.max_body);
  if (head.content_length > body_limit_)
    return refuse(incoming, 413, "The request body is too large: send less at a time.");
  body_size_ = size_t(head.content_length);
  is_chunked_ = head.chunked;
  if (!is_chunked_ && in.size() - head_size >= body_size_) return deliver(in, head, incoming);

  phase_ = Phase::body;
  chunked_ = ChunkedBody();
  const Result result = read_body(in, incoming);
  owes_continue_ = result == Result::incomplete && head.expects_continue && head.http_1_1;
  return result;
}

RequestReader::Result RequestReader::read_body(InBuffer& in, Incoming& incoming) {
  const size_t head_size = scan_.size();
  if (is_chunked_) {
    switch (chunked_.decode(in.data() + head_size, in.size() - head_size, body_limit_)) {
      case ChunkedBody::Result::incomplete:
        return Result::incomplete;
      case ChunkedBody::Result::malformed:
        return refuse(incoming, 400, "The chunked body is not well formed.");
      case ChunkedBody::Result::too_large:
        return refuse(incoming, 413, "The request body is too large: send less at a time.");
      case ChunkedBody::Result::complete:
        break;
    }
  } else if (in.size() - head_size < body_size_) {
    return Result::incomplete;
  }
  // The buffer may have moved since the head was parsed, so its fields are found again.
  Head head;
  const char* problem = parse_head(in.view().substr(0, head_size), head);
  TS_CHECK(problem == nullptr, "a head that was good is good");
  return deliver(in, head, incoming);
}

RequestReader::Result RequestReader::deliver(InBuffer& in, const Head& head, Incoming& incoming) const {
  Request& request = incoming.request;
  request.method = head.method;
  request.method_text = head.method_text;
  request.path = head.path;
  request.query = head.query;
  request.body = in.view().substr(scan_.size(), is_chunked_ ? chunked_.decoded() : body_size_);
  request.last_event_id = head.last_event_id;
  request.host = head.host;
  request.origin = head.origin;
  request.authorization = head.authorization;
  request.sec_fetch_site = head.sec_fetch_site;
  request.accept = head.accept;
  request.if_none_match = head.if_none_match;
  incoming.http_1_1 = head.http_1_1;
  incoming.keep_alive = head.keep_alive;
  return Result::complete;
}

void RequestReader::finish(InBuffer& in) {
  in.consume(scan_.size() + (is_chunked_ ? chunked_.taken() : body_size_));
  scan_.reset();
  phase_ = Phase::between;
  skipped_line_ = false;
  body_limit_ = 0;
}

void RequestReader::compact(InBuffer& in) {
  if (phase_ != Phase::body || !is_chunked_) return;
  const size_t head_size = scan_.size();
  in.cut(head_size + chunked_.decoded(), head_size + chunked_.taken());
  chunked_.compacted();
}

RequestReader::Result RequestReader::refuse(Incoming& incoming, unsigned status, const char* problem) {
  incoming.status = status;
  incoming.problem = problem;
  return Result::refused;
}

}  // namespace turnstile::http
