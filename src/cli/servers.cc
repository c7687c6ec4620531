#include "cli/servers.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json.h"
#include "client/core.h"
#include "client/curl_transport.h"
#include "client/server_url.h"
#include "client/wall_time.h"

namespace turnstile::cli {
namespace {

namespace json = boost::json;

constexpr Milliseconds kPatience{2'000};  // with each: people wait

json::object parse_object(std::string_view text) {
  boost::system::error_code bad;
  json::value parsed = json::parse(text, bad);
  return !bad && parsed.is_object() ? std::move(parsed.as_object()) : json::object();
}

std::string text_of(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

std::optional<uint64_t> number_of(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  boost::system::error_code bad;
  const auto number = value->to_number<uint64_t>(bad);
  return bad ? std::nullopt : std::optional(number);
}

ServerRow& row_of(Servers& servers, const std::string& url) {
  for (ServerRow& row : servers.rows)
    if (client::same_server(row.url, url)) return row;
  servers.rows.emplace_back().url = url;
  return servers.rows.back();
}

}  // namespace

void add_to(Servers& servers, const std::string& url, std::string_view said, std::string_view version) {
  const json::object own = parse_object(said);
  const std::string role = text_of(own, "role");
  ServerRow& row = row_of(servers, url);
  row.role = role.empty() ? "leader" : role;  // one that knows nothing of others is the only one
  row.name = text_of(own, "name");
  row.version = text_of(parse_object(version), "version");
  if (text_of(own, "mode") == "replicated") servers.replicated = true;
  const uint64_t term = number_of(own, "term").value_or(0);
  // Who has heard of the later term knows more; of the same one, the leader does.
  if (term < servers.term || (term == servers.term && role != "leader" && !servers.leader.empty())) return;
  servers.term = term;
  servers.leader = row.role == "leader" ? url : text_of(own, "leader");
  if (const json::value* etcd = own.if_contains("etcd"); etcd != nullptr && etcd->is_object())
    servers.etcd = *etcd;
  const json::value* all = own.if_contains("servers");
  if (all == nullptr || !all->is_array()) return;
  for (const json::value& each : all->as_array()) {
    if (!each.is_object()) continue;
    const json::object& other = each.as_object();
    // What a server says of itself is nearer than what others have heard.
    const std::string its_url = text_of(other, "url");
    const bool itself =
        text_of(other, "name") == row_of(servers, url).name || client::same_server(its_url, url);
    ServerRow& its = row_of(servers, itself ? url : its_url);
    if (its.name.empty()) its.name = text_of(other, "name");
    if (its.role.empty()) its.role = text_of(other, "role");
    if (const auto lag = number_of(other, "lag_batches")) its.lag_batches = lag;
    its.since = text_of(other, "since");
  }
}

Expected<Servers> look_at_servers(const Context& context) {
  Servers servers;
  std::optional<ClientError> error;
  bool any = false;
  for (const std::string& url : context.servers) {
    Context one = context;
    one.servers = {url};
    if (const Expected<LockClient> client = one.client(); !client) return std::unexpected(client.error());
    ClientSettings settings = *one.settings(0);
    settings.request_timeout = kPatience;
    LockClient::Core core(settings, std::make_shared<client::CurlTransport>(settings));
    const auto ask = [&](const char* target) {
      return core.caller().call(
          {.post = false, .target = target, .body = {}, .over_hand_over = false, .of_leader = false});
    };
    const auto said = ask("/servers");
    // An older server knows no others; and who may not see them may know who answers here.
    const std::string why_not = said ? "" : said.error().error.reason;
    const bool only_itself = why_not == "unknown_path" || why_not == "forbidden";
    const auto version = said || only_itself ? ask("/version") : said;
    if (!version) {
      error = version.error().error;
      ServerRow& row = row_of(servers, url);
      row.role = "away";
      row.error = error->message;
      continue;
    }
    any = true;
    add_to(servers, url, said ? std::string_view(said->body) : std::string_view(), version->body);
  }
  if (!any) return std::unexpected(*error);
  return servers;
}

json::object to_json(const Servers& servers) {
  json::object out{{"mode", servers.replicated ? "replicated" : "single"}, {"term", servers.term}};
  out["leader"] = servers.leader.empty() ? json::value(nullptr) : json::value(servers.leader);
  json::array rows;
  for (const ServerRow& row : servers.rows) {
    json::object one{{"url", row.url}, {"role", row.role}};
    if (!row.name.empty()) one["name"] = row.name;
    if (!row.version.empty()) one["version"] = row.version;
    if (row.lag_batches) one["lag_batches"] = *row.lag_batches;
    if (!row.since.empty()) one["since"] = row.since;
    if (!row.error.empty()) one["error"] = row.error;
    rows.push_back(std::move(one));
  }
  out["servers"] = std::move(rows);
  if (!servers.etcd.is_null()) out["etcd"] = servers.etcd;
  return out;
}

std::string show(const Servers& servers, WallTime now) {
  std::string out = servers.leader.empty() ? "no server leads\n"
                                           : fmt::format("{} leads, term {}\n", servers.leader, servers.term);
  Table table({"SERVER", "ROLE", "LAG", "FOR", "VERSION", ""});
  for (const ServerRow& row : servers.rows) {
    const std::optional<WallTime> since = client::parse_wall_time(row.since);
    table.add({one_line(row.url), row.role, row.lag_batches ? fmt::to_string(*row.lag_batches) : "-",
               since ? show_age(*since, now) : "-", row.version.empty() ? "-" : one_line(row.version),
               one_line(row.error)});
  }
  out += table.text();
  const json::object* etcd = servers.etcd.if_object();
  const json::value* members = etcd == nullptr ? nullptr : etcd->if_contains("members");
  if (members == nullptr || !members->is_array()) return out;
  size_t healthy = 0;
  bool full = false;
  uint64_t bytes = 0;
  for (const json::value& member : members->as_array()) {
    if (!member.is_object()) continue;
    const json::value* well = member.as_object().if_contains("healthy");
    healthy += well != nullptr && well->is_bool() && well->as_bool();
    const json::value* no_space = member.as_object().if_contains("no_space");
    full = full || (no_space != nullptr && no_space->is_bool() && no_space->as_bool());
    bytes = std::max(bytes, number_of(member.as_object(), "db_bytes").value_or(0));
  }
  out += fmt::format("etcd: {} of {} members healthy, {} bytes, {} errors\n", healthy,
                     members->as_array().size(), show_bytes(bytes), number_of(*etcd, "errors").value_or(0));
  if (full)
    out +=
        "etcd has no space left and takes no writes: compact and defragment it, then etcdctl alarm disarm\n";
  return out;
}

}  // namespace turnstile::cli
