#include "cli/metrics.h"

#include <boost/json.hpp>
#include <charconv>

#include "client/core.h"
#include "client/curl_transport.h"
#include "client/errors.h"

namespace turnstile::cli {

Metrics Metrics::parse(std::string_view text) {
  Metrics metrics;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t space = line.rfind(' ');
    if (line.starts_with('#') || space == std::string_view::npos) continue;
    const std::string_view number = line.substr(space + 1);
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc()) continue;
    const std::string_view name = line.substr(0, line.find_first_of("{ "));
    metrics.sums_[std::string(name)] += value;
  }
  return metrics;
}

double Metrics::sum(std::string_view name) const {
  const auto found = sums_.find(name);
  return found == sums_.end() ? 0 : found->second;
}

Expected<std::shared_ptr<LockClient::Core>> make_core(const Context& context, std::stop_token stop) {
  // create() checks the settings.
  if (const Expected<LockClient> client = context.client(); !client) return std::unexpected(client.error());
  const ClientSettings settings = *context.settings(Context::kFewRetries);
  client::CoreOptions options;
  options.stop = std::move(stop);
  return std::make_shared<LockClient::Core>(settings, std::make_shared<client::CurlTransport>(settings),
                                            std::move(options));
}

Expected<ServerSight> look_at_server(client::Caller& caller) {
  const auto version = caller.call({.post = false, .target = "/version", .body = {}, .of_leader = false});
  if (!version) return std::unexpected(version.error().error);
  boost::system::error_code bad;
  const boost::json::value parsed = boost::json::parse(version->body, bad);
  const boost::json::object* object = bad ? nullptr : parsed.if_object();
  const boost::json::value* number = object == nullptr ? nullptr : object->if_contains("version");
  if (number == nullptr || !number->is_string()) {
    return std::unexpected(client::not_turnstile(version->server, 200));
  }
  const auto metrics = caller.call({.post = false, .target = "/metrics", .body = {}, .of_leader = false});
  const bool hidden = !metrics && metrics.error().error.reason == "forbidden";
  if (!metrics && !hidden) return std::unexpected(metrics.error().error);
  return ServerSight{.server = version->server,
                     .version = std::string(number->as_string()),
                     .hidden = hidden,
                     .metrics = Metrics::parse(hidden ? std::string_view() : metrics->body)};
}

Expected<ServerSight> look_at_server(const Context& context) {
  const auto core = make_core(context);
  if (!core) return std::unexpected(core.error());
  return look_at_server((*core)->caller());
}

}  // namespace turnstile::cli
