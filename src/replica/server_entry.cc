#include "replica/server_entry.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace turnstile {
namespace {

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string encode(const ServerEntry& entry) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", entry.name, entry.url, entry.leads ? "leader" : "standby",
                     entry.number, entry.since.time_since_epoch().count(), entry.lag);
}

std::optional<ServerEntry> decode_server_entry(std::string_view value) {
  std::vector<std::string_view> lines;
  for (size_t end; (end = value.find('\n')) != std::string_view::npos; value.remove_prefix(end + 1))
    lines.push_back(value.substr(0, end));
  ServerEntry entry;
  int64_t since = 0;
  if (lines.size() < 5 || !parse(lines[3], entry.number) || !parse(lines[4], since)) return std::nullopt;
  if (lines.size() > 5 && !parse(lines[5], entry.lag)) return std::nullopt;
  entry.name = lines[0];
  entry.url = lines[1];
  entry.leads = lines[2] == "leader";
  entry.since = Time(Duration(since));
  return entry;
}

}  // namespace turnstile
