#include "http/response_writer.h"

#include <charconv>
#include <ctime>
#include <string>

namespace turnstile::http {
namespace {

std::string_view status_line(unsigned status) {
  switch (status) {
    case 200:
      return "HTTP/1.1 200 OK\r\nDate: ";
    case 201:
      return "HTTP/1.1 201 Created\r\nDate: ";
    case 202:
      return "HTTP/1.1 202 Accepted\r\nDate: ";
    case 204:
      return "HTTP/1.1 204 No Content\r\nDate: ";
    case 304:
      return "HTTP/1.1 304 Not Modified\r\nDate: ";
    case 307:
      return "HTTP/1.1 307 Temporary Redirect\r\nDate: ";
    case 400:
      return "HTTP/1.1 400 Bad Request\r\nDate: ";
    case 401:
      return "HTTP/1.1 401 Unauthorized\r\nDate: ";
    case 403:
      return "HTTP/1.1 403 Forbidden\r\nDate: ";
    case 404:
      return "HTTP/1.1 404 Not Found\r\nDate: ";
    case 405:
      return "HTTP/1.1 405 Method Not Allowed\r\nDate: ";
    case 408:
      return "HTTP/1.1 408 Request Timeout\r\nDate: ";
    case 409:
      return "HTTP/1.1 409 Conflict\r\nDate: ";
    case 413:
      return "HTTP/1.1 413 Content Too Large\r\nDate: ";
    case 429:
      return "HTTP/1.1 429 Too Many Requests\r\nDate: ";
    case 431:
      return "HTTP/1.1 431 Request Header Fields Too Large\r\nDate: ";
    case 500:
      return "HTTP/1.1 500 Internal Server Error\r\nDate: ";
    case 503:
      return "HTTP/1.1 503 Service Unavailable\r\nDate: ";
    default:
      return {};
  }
}

// Writes into room that was reserved before; each call is a copy and nothing else.
class Cursor {
 public:
  explicit Cursor(char* at) : at_(at) {}
  Cursor& operator<<(std::string_view text) {
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    return *this;
  }
  Cursor& operator<<(size_t number) {
    char digits[20];
    char* first = digits + sizeof digits;
    do *--first = char('0' + number % 10);
    while ((number /= 10) > 0);
    return *this << std::string_view(first, size_t(digits + sizeof digits - first));
  }
  char* at() const { return at_; }

 private:
  char* at_;
};

constexpr size_t kFixedHead = 256;  // more than all the lines below take without what the handler gives

}  // namespace

void ResponseWriter::response(OutBuffer& out, const Response& response, Framing framing, Time now) {
  const size_t given = response.content_type.size() + response.extra_headers.size() + response.body.size();
  Cursor to(out.reserve(kFixedHead + given));
  const std::string_view line = status_line(response.status);
  if (line.empty()) {
    to << "HTTP/1.1 " << size_t(response.status) << " Other\r\nDate: ";
  } else {
    to << line;
  }
  to << date(now);
  const bool has_content = response.status != 204 && response.status != 304;
  if (has_content) {
    to << "\r\nContent-Type: " << response.content_type << "\r\nContent-Length: " << response.body.size();
  }
  if (!framing.keep_alive) {
    to << "\r\nConnection: close";
  } else if (!framing.http_1_1) {
    to << "\r\nConnection: keep-alive";
  }
  to << "\r\n" << response.extra_headers << "\r\n";
  if (has_content && !framing.head_only) to << response.body;
  out.commit(to.at());
}

void ResponseWriter::stream_head(OutBuffer& out, std::string_view content_type, Framing framing,
                                 std::string_view first, Time now) {
  Cursor to(out.reserve(kFixedHead + content_type.size() + first.size()));
  // X-Accel-Buffering tells nginx to pass events on as they come.
  to << status_line(200) << date(now) << "\r\nContent-Type: " << content_type
     << "\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nConnection: close\r\n";
  if (framing.http_1_1) to << "Transfer-Encoding: chunked\r\n";
  to << "\r\n";
  if (!framing.head_only && !first.empty()) {
    char size[16];
    const char* const end = std::to_chars(size, size + sizeof size, first.size(), 16).ptr;
    if (framing.http_1_1) to << std::string_view(size, size_t(end - size)) << "\r\n";
    to << first;
    if (framing.http_1_1) to << "\r\n";
  }
  out.commit(to.at());
}

// As RFC 9110 wants it: Sun, 06 Nov 1994 08:49:37 GMT. Not by strftime(), which speaks the locale's language.
std::string_view ResponseWriter::date(Time now) {
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  if (second != date_of_) {
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t seconds = second.time_since_epoch().count();
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    const auto two = [](int number) {
      return std::string{char('0' + number / 10 % 10), char('0' + number % 10)};
    };
    Cursor(date_.data()) << kDays[parts.tm_wday] << ", " << two(parts.tm_mday) << " " << kMonths[parts.tm_mon]
                         << " " << 1900 + size_t(parts.tm_year) << " " << two(parts.tm_hour) << ":"
                         << two(parts.tm_min) << ":" << two(parts.tm_sec) << " GMT";
    date_of_ = second;
  }
  return {date_.data(), date_.size()};
}

}  // namespace turnstile::http
