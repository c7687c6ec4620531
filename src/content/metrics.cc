// See metrics.h.
#include "content/metrics.h"

#include <prometheus/text_serializer.h>

#include "base/metrics_text.h"

namespace turnstile::content {
namespace {

struct Row {
  const char *name, *help;
};
constexpr std::array<Row, kCounts> kRows = {{
    {"turnstile_content_pulled_blobs_total", "Blobs that this node has written and published"},
    {"turnstile_content_pulled_bytes_total", "Their sizes"},
    {"turnstile_content_adopted_blobs_total",
     "Blobs of other nodes, or kept ones, that this node has begun to use"},
    {"turnstile_content_saved_bytes_total", "Sizes of those for which nothing was downloaded here"},
    {"turnstile_content_received_bytes_total", "Bytes that containerd has sent, those of failed writes too"},
    {"turnstile_content_waits_total", "Answers that told containerd to come again"},
    {"turnstile_content_queued_total", "Places taken in the lock server's queues"},
    {"turnstile_content_failed_writes_total", "Writes that ended without a blob"},
    {"turnstile_content_takeovers_total", "Rights to write that came after another's failure or death"},
    {"turnstile_content_pulls_without_server_total", "Writes and adoptions begun while no server answered"},
    {"turnstile_content_uses_ended_total", "Blobs that this node has stopped using"},
    {"turnstile_content_removed_blobs_total", "Blobs whose files this node has removed, as their last user"},
    {"turnstile_content_lost_blobs_total", "Blobs in use whose files were found to be gone"},
    {"turnstile_content_damaged_blobs_total", "Blobs whose files were found to hold other bytes"},
}};

}  // namespace

Metrics::Metrics() : registry_(std::make_shared<prometheus::Registry>()) {
  for (size_t i = 0; i < kCounts; ++i)
    counters_[i] =
        &prometheus::BuildCounter().Name(kRows[i].name).Help(kRows[i].help).Register(*registry_).Add({});
  writes_ = &prometheus::BuildGauge()
                 .Name("turnstile_content_ingests")
                 .Help("Blobs that are being written by this node now")
                 .Register(*registry_)
                 .Add({});
}

void Metrics::set_lock_server(bool answers, std::optional<std::string> why_not_ready) {
  set_gauge("turnstile_content_lock_server_up", "Whether the lock server answers", answers ? 1 : 0);
  const Locked lock(mutex_);
  not_ready_ = std::move(why_not_ready);
}

std::optional<std::string> Metrics::why_not_ready() const {
  const Locked lock(mutex_);
  return not_ready_;
}

void Metrics::set_gauge(const char* name, const char* help, double value) {
  prometheus::BuildGauge().Name(name).Help(help).Register(*registry_).Add({}).Set(value);
}

std::string Metrics::text() const {
  std::string text = prometheus::TextSerializer().Serialize(registry_->Collect());
  append_process_metrics(text);
  return text;
}

}  // namespace turnstile::content
