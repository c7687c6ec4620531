// What several servers say of themselves and of each other: who leads, who stands by, who is away.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"

namespace turnstile::cli {

struct ServerRow {
  std::string url, name, role;  // leader, standby, none; away: it does not answer
  std::string version;          // of turnstiled; empty: not asked
  std::optional<uint64_t> lag_batches;
  std::string since;  // RFC 3339
  std::string error;  // with away
};

struct Servers {
  bool replicated = false;
  std::string leader;  // its URL; empty: none
  uint64_t term = 0;
  std::vector<ServerRow> rows;
  boost::json::value etcd;  // as the server tells it; null: nothing
};

// Asks each server of the settings, once. The error is that of the last one, when none has answered.
Expected<Servers> look_at_servers(const Context& context);
// Puts together what one server at `url` says (the answers of GET /servers and GET /version).
void add_to(Servers& servers, const std::string& url, std::string_view said, std::string_view version);

boost::json::object to_json(const Servers& servers);
std::string show(const Servers& servers, WallTime now);

}  // namespace turnstile::cli
