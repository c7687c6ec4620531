// The calls about the server itself: health, readiness, metrics, version, summary, the status page, the API's
// description.
#include <fmt/format.h>

#include "api/openapi.h"
#include "base/rfc3339.h"
#include "page/page_files.h"
#include "server/loop_handler.h"
#include "service/summary.h"

namespace turnstile {
namespace {

constexpr std::string_view kWelcome =
    "This is turnstiled, a lock server.\n"
    "\n"
    "Take a lock:   curl -X POST http://HOST/lock   -d "
    "'{\"type\":\"pull\",\"resource_id\":\"sha256:1\",\"node_id\":\"a\"}'\n"
    "Release it:    curl -X POST http://HOST/unlock -d "
    "'{\"type\":\"pull\",\"resource_id\":\"sha256:1\",\"node_id\":\"a\"}'\n"
    "List locks:    curl http://HOST/locks\n"
    "Follow:        curl -N http://HOST/events\n"
    "\n"
    "Status page:   open http://HOST/ in a browser\n"
    "\n"
    "More:          /openapi.yaml (the API)   /metrics (Prometheus)   /version (build and settings)\n";

}  // namespace

std::string LoopHandler::version() const {
  const access::Principal* who = admission_.who();
  const bool for_client = who != nullptr && who->role == access::Role::client;
  std::string rest = for_client ? common_.client_version : common_.version;
  // So that a page can leave out what its reader may not do.
  if (who != nullptr) rest = fmt::format(R"({{"role":"{}",{})", access::name_of(who->role), rest.substr(1));
  if (service_ == nullptr) return rest;
  const auto uptime =
      std::chrono::duration_cast<std::chrono::milliseconds>(service_->now() - service_->began());
  std::string time;
  append_rfc3339(time, service_->now());
  return fmt::format(R"({{"life":"{:x}","uptime_ms":{},"time":"{}",{})", service_->life(), uptime.count(),
                     time, std::string_view(rest).substr(1));
}

http::Handled LoopHandler::summary(const Request& request, Responder& responder) {
  if (service_ == nullptr && common_.standing().replicated) return stand_by(request, responder);
  if (const auto why = why_not(true)) return respond_error(responder, make_error(*why));
  append_summary(body_, *service_, common_.metrics(), admission_.within());
  effects_.sequence = service_->gate().latest();
  return respond(request, responder, 200);
}

http::Handled LoopHandler::page_file(const PageFile* file, bool varies, const Request& request,
                                     Responder& responder) {
  if (file == nullptr) return respond_error(responder, make_error(ErrorCode::unknown_path));
  const std::string headers = page_headers(*file, varies);
  http::Response response;
  response.content_type = file->content_type;
  response.extra_headers = headers;
  response.body = file->text;
  if (request.if_none_match.contains(file->etag)) {
    response.status = 304;
    response.body = {};
  }
  responder.respond(response);
  common_.metrics().count_request(response.status);
  return Handled::answered;
}

// A standby says no, unless it was asked whether it is a good one.
http::Handled LoopHandler::readiness(const Request& request, Responder& responder) {
  const Common::Standing standing = common_.standing();
  if (service_ == nullptr && standing.replicated) {
    if (request.query == "standby=1" && standing.in_step && !common_.stopping())
      return respond_text(responder, "application/json", R"({"ready":true,"standby":true})");
    ApiError error = make_error(standing.leader.empty() ? ErrorCode::no_leader : ErrorCode::not_leader);
    error.status = make_error(ErrorCode::no_leader).status;
    return respond_error(responder, error);
  }
  if (service_ != nullptr && service_->gate().is_over())
    return respond_error(responder, make_error(ErrorCode::no_leader));
  if (const auto why = why_not(false)) return respond_error(responder, make_error(*why));
  return respond_text(responder, "application/json", R"({"ready":true})");
}

http::Handled LoopHandler::info(Path path, const Request& request, Responder& responder) {
  fresh();
  switch (path) {
    case Path::healthz:
      return respond_text(responder, "application/json", R"({"status":"ok"})");
    case Path::readyz:
      return readiness(request, responder);
    case Path::servers:
      return respond_text(responder, "application/json", common_.on_servers());
    case Path::metrics:
      return respond_text(responder, "text/plain; version=0.0.4", common_.on_metrics(service_));
    case Path::version:
      return respond_text(responder, "application/json", version());
    case Path::summary:
      return summary(request, responder);
    case Path::openapi:
      return respond_text(responder, "application/yaml", openapi_yaml());
    case Path::page:
      return page_file(find_page_file(request.path.substr(sizeof "/page/" - 1)), false, request, responder);
    default:
      if (request.accept.contains("text/html"))
        return page_file(find_page_file("index.html"), true, request, responder);
      return respond_text(responder, "text/plain; charset=utf-8", kWelcome,
                          "Vary: Accept\r\nX-Content-Type-Options: nosniff\r\n");
  }
}

}  // namespace turnstile
