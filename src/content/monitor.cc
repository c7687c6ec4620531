// See monitor.h.
#include "content/monitor.h"

#include <fmt/format.h>

namespace turnstile::content {
namespace {

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr size_t kMaxConnections = 64;  // whoever watches needs one

// Threads: its loop's.
class MonitorHandler final : public http::Handler {
 public:
  MonitorHandler(const ContentStore& store, Metrics& metrics) : store_(store), metrics_(metrics) {}

  http::Handled handle(const http::Request& request, http::Responder& responder) override {
    std::string body;
    http::Response response;
    response.content_type = kPlain;
    if (request.method != http::Method::get && request.method != http::Method::head) {
      response.status = 405;
      response.extra_headers = "Allow: GET, HEAD\r\n";
      body = "Only GET is answered here.\n";
    } else if (request.path == "/metrics") {
      response.content_type = "text/plain; version=0.0.4";
      body = text();
    } else if (request.path == "/healthz") {
      body = "ok\n";
    } else if (request.path == "/readyz") {
      const std::optional<std::string> trouble = metrics_.why_not_ready();
      if (trouble) response.status = 503;
      body = trouble.value_or("ok") + "\n";
    } else {
      response.status = 404;
      body = "There are /healthz, /readyz and /metrics.\n";
    }
    response.body = body;
    responder.respond(response);
    return http::Handled::answered;
  }
  void on_closed(http::ConnectionId) override {}
  void on_timer(http::ConnectionId) override {}
  bool may_leave(uint64_t) override { return true; }
  void on_written(std::span<const http::Receipt>) override {}
  void on_drained(http::ConnectionId) override {}
  std::string error_body(unsigned, std::string_view message) override {
    return fmt::format(R"({{"message":"{}"}})", message);
  }

 private:
  std::string text() {
    const NodeState::Totals totals = store_.totals();
    metrics_.set_gauge("turnstile_content_blobs", "Blobs that this node uses", double(totals.blobs));
    metrics_.set_gauge("turnstile_content_blob_bytes", "Their sizes", double(totals.bytes));
    const NodeState::Totals kept = store_.totals(Stage::kept);
    metrics_.set_gauge("turnstile_content_kept_blobs",
                       "Blobs that are kept although this node does not use them", double(kept.blobs));
    metrics_.set_gauge("turnstile_content_kept_bytes", "Their sizes", double(kept.bytes));
    metrics_.set_gauge("turnstile_content_leaving_blobs", "Blobs that this node has still to give up",
                       double(store_.totals(Stage::leaving).blobs));
    metrics_.set_gauge("turnstile_content_unconfirmed_blobs",
                       "Blobs in use of which the lock server has not confirmed that it counts them",
                       double(store_.lives().unconfirmed()));
    return metrics_.text();
  }

  const ContentStore& store_;
  Metrics& metrics_;
};

}  // namespace

Result<std::unique_ptr<Monitor>> Monitor::start(const std::string& listen, const ContentStore& store,
                                                Metrics& metrics) {
  http::ServerSettings settings;
  settings.listen = {listen};
  settings.limits.max_connections = kMaxConnections;
  settings.handler = [&store, &metrics](http::Loop&) {
    return std::make_unique<MonitorHandler>(store, metrics);
  };
  std::unique_ptr<Monitor> monitor(new Monitor(std::move(settings)));
  if (Result<void> started = monitor->server_.start(); !started)
    return turnstile::fail("--metrics-listen: " + started.error().message);
  return monitor;
}

}  // namespace turnstile::content
