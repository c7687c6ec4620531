// What a server tells of itself: its version, and the counters of /metrics that this program shows.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "cli/context.h"
#include "turnstile/error.h"

namespace turnstile::client {
class Caller;
}

namespace turnstile::cli {

// Prometheus' text format, summed over labels: all that we show are totals.
class Metrics {
 public:
  static Metrics parse(std::string_view text);
  double sum(std::string_view name) const;  // 0: not there

 private:
  std::map<std::string, double, std::less<>> sums_;
};

struct ServerSight {
  std::string server;   // who answered
  std::string version;  // of turnstiled
  bool hidden = false;  // this credential may not see the metrics
  Metrics metrics;
};

Expected<ServerSight> look_at_server(const Context& context);
Expected<ServerSight> look_at_server(client::Caller& caller);
// The library's own wires, for the calls that its public interface does not have. `stop` ends all calls.
Expected<std::shared_ptr<LockClient::Core>> make_core(const Context& context, std::stop_token stop = {});

}  // namespace turnstile::cli
