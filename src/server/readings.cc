#include "server/readings.h"

#include "base/metrics_text.h"

namespace turnstile {
namespace {

double seconds_since_1970(Time time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

void append_limits(MetricsText& text, const Settings& settings, const http::Statistics& http, size_t streams,
                   Service* service) {
  struct Limit {
    const char* name;  // of the setting
    size_t limit;
    uint64_t used;
  };
  std::vector<Limit> limits = {{"max-connections", http.connections_room, http.connections_open},
                               {"max-streams", settings.max_streams, streams}};
  if (service != nullptr) {
    const Engine& engine = service->engine();
    const EngineSettings& most = settings.engine;
    limits.push_back({"max-resources", most.max_resources, engine.resource_count()});
    limits.push_back({"max-references", most.max_references, engine.reference_count()});
    limits.push_back({"max-waiters", most.max_waiters, engine.waiter_count()});
    limits.push_back({"max-result-memory", most.max_result_memory, engine.result_bytes()});
  }
  text.gauge("turnstile_limit", "How much there may be of what is limited, by the name of the setting");
  for (const Limit& each : limits) text.value("limit", each.name, double(each.limit));
  text.gauge("turnstile_limit_used", "How much of it there is now");
  for (const Limit& each : limits) text.value("limit", each.name, double(each.used));
}

void append_journal(MetricsText& text, const JournalFigures& journal) {
  text.gauge("turnstile_journal_bytes",
             "Bytes that a restart reads: the last snapshot, and the log behind it");
  text.value("part", "log", double(journal.log_bytes));
  text.value("part", "snapshot", double(journal.snapshot_bytes));
  if (journal.snapshot_bytes == 0) return;
  text.gauge("turnstile_journal_snapshot_timestamp_seconds",
             "When the last snapshot was begun, in seconds since 1970");
  text.value(seconds_since_1970(journal.snapshot_time));
}

}  // namespace

void append_readings(std::string& out, const Settings& settings, const http::Statistics& http, size_t streams,
                     Service* service) {
  MetricsText text(out);
  text.gauge("turnstile_connections", "Connections open now");
  text.value(double(http.connections_open.load()));
  text.gauge("turnstile_streams", "Event streams open now");
  text.value(double(streams));
  text.counter("turnstile_streams_cut_total", "Event streams cut off because their reader was too slow");
  text.value(double(http.streams_cut.load()));
  text.counter("turnstile_tls_handshakes_total", "TLS handshakes that are over, by how they ended");
  text.value("end", "full", double(http.tls_full.load()));
  text.value("end", "resumed", double(http.tls_resumed.load()));
  text.value("end", "failed", double(http.tls_failed.load()));
  if (service != nullptr) {
    text.gauge("turnstile_resources", "Resources that the server knows");
    text.value(double(service->engine().resource_count()));
    if (service->journal().keeps_records()) append_journal(text, service->journal().figures());
  }
  append_limits(text, settings, http, streams, service);
  append_process_metrics(out);
}

}  // namespace turnstile
