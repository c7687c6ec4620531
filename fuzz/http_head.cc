// The head of an HTTP request. What must hold:
// - where it ends, and whether its lines are well formed, does not depend on the pieces in which it comes;
// - every text of an accepted head lies inside of it, the target is a path, and no head has two lengths of a
// body;
// - an accepted head that is written anew from its fields is accepted and has the same fields.
#include <fmt/format.h>

#include "http/head_parser.h"
#include "http/head_scan.h"
#include "http/uri.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

using http::Head;
using http::HeadScan;

std::string written_anew(const Head& head) {
  std::string out = fmt::format("{} {}", head.method_text, head.path);
  if (!head.query.empty()) out.append("?").append(head.query);
  out += head.http_1_1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n";
  if (head.http_1_1 || !head.host.empty()) out += fmt::format("Host: {}\r\n", head.host);
  const auto field = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) out += fmt::format("{}: {}\r\n", name, value);
  };
  field("Origin", head.origin);
  field("Authorization", head.authorization);
  field("Last-Event-ID", head.last_event_id);
  field("Connection", head.keep_alive ? "keep-alive" : "close");
  field("Expect", head.expects_continue ? "100-continue" : "");
  field("Transfer-Encoding", head.chunked ? "chunked" : "");
  if (head.content_length > 0) field("Content-Length", fmt::to_string(head.content_length));
  return out + "\r\n";
}

void check_same(const Head& a, const Head& b) {
  TS_CHECK(a.method == b.method && a.method_text == b.method_text, "the method is the same");
  TS_CHECK(a.path == b.path && a.query == b.query, "the target is the same");
  TS_CHECK(a.host == b.host && a.origin == b.origin && a.authorization == b.authorization,
           "the fields are the same");
  TS_CHECK(a.last_event_id == b.last_event_id && a.expects_continue == b.expects_continue,
           "the fields are the same");
  TS_CHECK(a.content_length == b.content_length && a.chunked == b.chunked, "the body's length is the same");
  TS_CHECK(a.http_1_1 == b.http_1_1 && a.keep_alive == b.keep_alive,
           "the connection is used in the same way");
}

void check_accepted(const Head& head, std::string_view bytes) {
  const auto inside = [&](std::string_view text) {
    return text.empty() || text == "*" || text == "/" ||
           (text.data() >= bytes.data() && text.data() + text.size() <= bytes.data() + bytes.size());
  };
  for (const std::string_view text : {head.method_text, head.path, head.query, head.host, head.origin,
                                      head.authorization, head.last_event_id})
    TS_CHECK(inside(text), "a text of a head lies inside of it");
  TS_CHECK(head.path.starts_with('/') || head.path == "*", "a target is a path");
  TS_CHECK(http::is_path_and_query(head.path) && http::is_path_and_query(head.query),
           "a target has no stray bytes");
  TS_CHECK(http::is_host(head.host), "a host is one");
  TS_CHECK(!(head.chunked && head.content_length > 0), "a body has one length");
}

}  // namespace

void run(std::string_view bytes) {
  HeadScan at_once, by_bytes;
  const HeadScan::Result found = at_once.scan(bytes);
  HeadScan::Result stepwise = HeadScan::Result::incomplete;
  for (size_t size = 1; size <= bytes.size() && stepwise == HeadScan::Result::incomplete; ++size)
    stepwise = by_bytes.scan(bytes.substr(0, size));
  TS_CHECK(found == stepwise, "a head is judged alike in whatever pieces it comes");
  if (found != HeadScan::Result::complete) return;
  TS_CHECK(at_once.size() == by_bytes.size(), "a head ends at the same place in whatever pieces it comes");

  const ExactCopy text(bytes.substr(0, at_once.size()));
  Head head;
  if (http::parse_head(text.view(), head) != nullptr) return;
  check_accepted(head, text.view());
  const std::string anew = written_anew(head);
  Head again;
  TS_CHECK(http::parse_head(anew, again) == nullptr, "a head written anew is accepted");
  check_same(head, again);
}

}  // namespace turnstile::fuzz
