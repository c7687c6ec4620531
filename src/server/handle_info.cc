// The calls about the server itself: health, readiness, metrics, version, the API's description.
#include <fmt/format.h>

#include "api/openapi.h"
#include "server/loop_handler.h"

namespace turnstile {
namespace {

constexpr std::string_view kWelcome =
    "This is turnstiled, a lock server that knows how the work ended.\n"
    "\n"
    "Take a lock:   curl -X POST http://HOST/lock   -d "
    "'{\"type\":\"pull\",\"resource_id\":\"sha256:1\",\"node_id\":\"a\"}'\n"
    "Free it:       curl -X POST http://HOST/unlock -d "
    "'{\"type\":\"pull\",\"resource_id\":\"sha256:1\",\"node_id\":\"a\"}'\n"
    "Look:          curl http://HOST/locks\n"
    "Follow:        curl -N http://HOST/events\n"
    "\n"
    "Read on:       /openapi.yaml (the API)   /metrics (Prometheus)   /version (build and settings)\n";

}  // namespace

std::string LoopHandler::version() const {
  if (service_ == nullptr) return common_.version;
  const auto uptime =
      std::chrono::duration_cast<std::chrono::milliseconds>(service_->now() - service_->began());
  return fmt::format(R"({{"life":"{:x}","uptime_ms":{},{})", service_->life(), uptime.count(),
                     std::string_view(common_.version).substr(1));
}

http::Handled LoopHandler::info(Path path, Responder& responder) {
  fresh();
  switch (path) {
    case Path::healthz:
      return respond_text(responder, "application/json", R"({"status":"ok"})");
    case Path::readyz:
      if (const auto why = why_not(false)) return respond_error(responder, make_error(*why));
      return respond_text(responder, "application/json", R"({"ready":true})");
    case Path::metrics:
      return respond_text(responder, "text/plain; version=0.0.4", common_.on_metrics(service_));
    case Path::version:
      return respond_text(responder, "application/json", version());
    case Path::openapi:
      return respond_text(responder, "application/yaml", openapi_yaml());
    default:
      return respond_text(responder, "text/plain; charset=utf-8", kWelcome);
  }
}

}  // namespace turnstile
