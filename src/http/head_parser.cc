#include "http/head_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "http/uri.h"

namespace turnstile::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using beast::http::field;
using beast::http::verb;

std::string_view plain(beast::string_view text) { return {text.data(), text.size()}; }

bool same(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text, lower_case,
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? char(a + 32) : a) == b; });
}

// What Beast reports is enough to stop; `problem_` is the sentence for the caller where we know better than
// Beast.
class Parser final : public beast::http::basic_parser<true> {
 public:
  explicit Parser(Head& head) : head_(head) {
    header_limit(UINT32_MAX);
    body_limit(boost::none);
  }

  const char* parse(std::string_view bytes) {
    error_code failure;
    put(boost::asio::const_buffer(bytes.data(), bytes.size()), failure);
    if (problem_) return problem_;
    if (failure) return sentence(failure);
    if (!is_header_done()) return "The request head is not well formed.";
    return finish();
  }

 private:
  void on_request_impl(verb method, beast::string_view text, beast::string_view target, int version,
                       error_code& failure) override {
    head_.method_text = plain(text);
    head_.method = method == verb::get       ? Method::get
                   : method == verb::post    ? Method::post
                   : method == verb::head    ? Method::head
                   : method == verb::options ? Method::options
                                             : Method::other;
    head_.http_1_1 = version == 11;
    if (const char* problem = take_target(plain(target))) refuse(problem, failure);
  }

  void on_field_impl(field name, beast::string_view name_text, beast::string_view value,
                     error_code& failure) override {
    switch (name) {
      case field::host:
        if (hosts_++ > 0) return refuse("The request has more than one Host header.", failure);
        if (!is_host(plain(value))) return refuse("The Host header is no host name or address.", failure);
        if (!authority_in_target_) head_.host = plain(value);
        return;
      case field::transfer_encoding:
        if (!same(plain(value), "chunked"))
          refuse("The only Transfer-Encoding known here is chunked.", failure);
        return;
      case field::expect:
        head_.expects_continue = same(plain(value), "100-continue");
        return;
      case field::origin:
        return take_once(head_.origin, value, "The request has more than one Origin header.", failure);
      case field::authorization:
        return take_once(head_.authorization, value, "The request has more than one Authorization header.",
                         failure);
      case field::accept:
        head_.accept = plain(value);
        return;
      case field::sec_fetch_site:
        return take_once(head_.sec_fetch_site, value, "The request has more than one Sec-Fetch-Site header.",
                         failure);
      case field::if_none_match:
        head_.if_none_match = plain(value);
        return;
      case field::unknown:
        if (same(plain(name_text), "last-event-id")) head_.last_event_id = plain(value);
        return;
      default:
        return;
    }
  }

  // Who decides by such a header must not be shown another one than a proxy before us has looked at.
  void take_once(std::string_view& out, beast::string_view value, const char* problem, error_code& failure) {
    if (out.data() != nullptr) return refuse(problem, failure);
    out = plain(value);
    if (out.data() == nullptr) out = "";
  }

  const char* finish() {
    if (head_.http_1_1 && hosts_ == 0) return "A request of HTTP/1.1 needs a Host header.";
    if (chunked() && !head_.http_1_1) return "Transfer-Encoding is not part of HTTP/1.0.";
    head_.chunked = chunked();
    head_.content_length = content_length().value_or(0);
    head_.keep_alive = keep_alive();
    return nullptr;
  }

  // `/path?query`, the same behind `http://authority`, which then replaces the Host header, or the `*` of an
  // OPTIONS that asks about the server as a whole. Returns what is wrong.
  const char* take_target(std::string_view target) {
    if (target == "*" && head_.method == Method::options) {
      head_.path = target;
      return nullptr;
    }
    if (!target.starts_with('/') && !take_authority(target))
      return "The request target is neither a path nor a URI of this server's.";
    if (!is_path_and_query(target))
      return "The request target has a character that must be escaped, or an escape that is none.";
    const size_t question = target.find('?');
    head_.path = target.substr(0, question);
    if (head_.path.empty())
      head_.path = head_.method == Method::options && question == target.npos ? "*" : "/";
    if (question != target.npos) head_.query = target.substr(question + 1);
    return nullptr;
  }

  // Takes `http://authority` off the target.
  bool take_authority(std::string_view& target) {
    const size_t scheme = same(target.substr(0, 7), "http://")    ? 7
                          : same(target.substr(0, 8), "https://") ? 8
                                                                  : 0;
    if (scheme == 0) return false;
    const size_t end = std::min(target.find_first_of("/?#", scheme), target.size());
    head_.host = target.substr(scheme, end - scheme);
    authority_in_target_ = true;
    target.remove_prefix(end);
    return !head_.host.empty() && is_host(head_.host);
  }

  void refuse(const char* problem, error_code& failure) {
    problem_ = problem;
    failure = beast::http::error::bad_value;
  }

  static const char* sentence(error_code failure) {
    using beast::http::error;
    if (failure == error::bad_version) return "This server speaks HTTP/1.1 and HTTP/1.0.";
    if (failure == error::bad_content_length) return "The Content-Length is not a number, or is not alone.";
    if (failure == error::multiple_content_length) return "The request has Content-Lengths that differ.";
    if (failure == error::bad_transfer_encoding)
      return "Transfer-Encoding must be alone, without a Content-Length.";
    return "The request head is not well formed.";
  }

  // We give the parser the head only, and these are for bodies and responses.
  void on_response_impl(int, beast::string_view, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(beast::string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(uint64_t, beast::string_view, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, beast::string_view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}

  Head& head_;
  const char* problem_ = nullptr;
  int hosts_ = 0;
  bool authority_in_target_ = false;
};

}  // namespace

const char* parse_head(std::string_view bytes, Head& head) {
  head = Head{};
  return Parser(head).parse(bytes);
}

}  // namespace turnstile::http
