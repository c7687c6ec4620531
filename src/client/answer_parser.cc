#include "client/answer_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>

namespace turnstile::client {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using Text = beast::string_view;

}  // namespace

class AnswerParser::Beast : public beast::http::basic_parser<false> {
 public:
  Beast() {
    eager(true);
    body_limit(kMaxBody);
  }

  // Beast wants the bytes that it could not use yet again, in one piece with those that follow; they are
  // kept only then.
  Fed feed(std::string_view bytes) {
    if (!rest_.empty()) {
      rest_ += bytes;
      // The last chunk has no fewer bytes, and Beast asserts that it is not shown fewer of it a second time.
      if (is_header_done() && chunked() && rest_.size() < kLastChunk) return Fed::more;
      bytes = rest_;
    }
    error_code error;
    const size_t used = put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    if (error && error != beast::http::error::need_more) {
      return error == beast::http::error::body_limit ? Fed::too_large : Fed::wrong;
    }
    if (is_done()) return used == bytes.size() ? Fed::done : Fed::wrong;
    rest_ = std::string(bytes.substr(used));
    return is_header_done() && chunked() && has_whole_line_of_chunk(rest_) ? Fed::wrong : Fed::more;
  }

  // Of a chunk with data. Beast still wants more then if a quoted text goes on behind the end of the line,
  // which none may, and counts the chunk against the limit of the body at each try.
  static bool has_whole_line_of_chunk(std::string_view text) {
    if (text.starts_with("\r\n")) text.remove_prefix(2);  // behind the chunk before
    text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
    return !text.empty() && std::isxdigit(uint8_t(text[0])) && text.find("\r\n") != text.npos;
  }

  static constexpr size_t kLastChunk = std::string_view("0\r\n\r\n").size();

  Answer answer;

 private:
  void on_request_impl(beast::http::verb, Text, Text, int, error_code&) override {}
  void on_response_impl(int code, Text, int, error_code&) override { answer.status = code; }
  void on_field_impl(beast::http::field name, Text, Text value, error_code&) override {
    if (name != beast::http::field::retry_after) return;
    constexpr long kLongest = 24 * 60 * 60;  // so that nobody who counts in smaller units can run over
    long seconds = 0;
    const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (wrong == std::errc() && seconds > 0)
      answer.retry_after = std::chrono::seconds(std::min(seconds, kLongest));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(Text body, error_code&) override {
    answer.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(uint64_t, Text, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, Text body, error_code&) override {
    answer.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  std::string rest_;
};

AnswerParser::AnswerParser() : beast_(std::make_unique<Beast>()) {}
AnswerParser::~AnswerParser() = default;

AnswerParser::Fed AnswerParser::feed(std::string_view bytes) { return beast_->feed(bytes); }

AnswerParser::Fed AnswerParser::end() {
  if (!beast_->got_some()) return Fed::wrong;  // Beast takes nothing at all for a complete message
  error_code error;
  beast_->put_eof(error);
  return !error && beast_->is_done() ? Fed::done : Fed::wrong;
}

bool AnswerParser::keep_alive() const { return beast_->keep_alive(); }
Answer AnswerParser::take() { return std::move(beast_->answer); }

}  // namespace turnstile::client
