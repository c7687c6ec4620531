#include "client/sse_parser.h"

namespace turnstile::client {

SseParser::Fed SseParser::feed(std::string_view bytes, const OnEvent& on_event) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') {
      after_cr_ = false;
      bytes.remove_prefix(1);
      continue;
    }
    after_cr_ = false;
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + event_.data.size() + part.size() > kMaxEvent) return Fed::too_long;
    line_ += part;
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (const Fed fed = end_of_line(on_event); fed != Fed::more) return fed;
  }
  return Fed::more;
}

SseParser::Fed SseParser::end_of_line(const OnEvent& on_event) {
  if (!line_.empty()) {
    field(line_);
    line_.clear();
    return Fed::more;
  }
  const bool dispatch = has_data_;
  has_data_ = false;
  SseEvent event{.id = event_.id, .name = std::move(event_.name), .data = std::move(event_.data)};
  event_.name.clear();
  event_.data.clear();
  return dispatch && !on_event(event) ? Fed::enough : Fed::more;
}

void SseParser::field(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == 0) return;  // a comment
  const std::string_view name = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "id") {
    event_.id = value;
  } else if (name == "event") {
    event_.name = value;
  } else if (name == "data") {
    if (has_data_) event_.data += '\n';
    has_data_ = true;
    event_.data += value;
  }
}

}  // namespace turnstile::client
