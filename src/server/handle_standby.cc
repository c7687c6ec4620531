// What a server that does not lead says: where the leader is, or the leader's own answer, or that there is
// none.
#include <fmt/format.h>

#include "api/json_append.h"
#include "server/loop_handler.h"

namespace turnstile {

http::Handled LoopHandler::stand_by(const Request& request, Responder& responder) {
  fresh();
  if (common_.stopping()) return respond_error(responder, make_error(ErrorCode::shutting_down));
  const std::string leader = common_.standing().leader;
  if (leader.empty()) return respond_error(responder, make_error(ErrorCode::no_leader));
  if (common_.forwarder != nullptr && can_forward(request)) return forward(request, responder);
  return refer(request, responder, leader);
}

// 307: curl -L, and nearly every library, sends the same request there.
http::Handled LoopHandler::refer(const Request& request, Responder& responder, const std::string& leader) {
  const ApiError error = make_error(ErrorCode::not_leader);
  body_ = R"({"error":)";
  append_json_text(body_, error.message);
  body_ += R"(,"code":)";
  append_json_text(body_, error.code);
  body_ += R"(,"leader":)";
  append_json_text(body_, leader);
  body_ += '}';
  const std::string location = fmt::format("Location: {}{}{}{}\r\n", leader, request.path,
                                           request.query.empty() ? "" : "?", request.query);
  http::Response response;
  response.status = error.status;
  response.extra_headers = location;
  response.body = body_;
  responder.respond(response);
  common_.metrics().count_request(response.status);
  return Handled::answered;
}

// What lives by its connection cannot be passed on: the leader would see ours.
bool LoopHandler::can_forward(const Request& request) const {
  if (request.path == "/events" || request.path.ends_with("/subscribe")) return false;
  // Letters may be written as \u…, and nobody needs that in a body: who does is sent to the leader.
  for (const char* sign : {"\"monitor\"", "\\u"})
    if (request.body.find(sign) != std::string_view::npos) return false;
  // Nor can a certificate, or the user of a unix socket; a secret can.
  return admission_.who() == nullptr || !request.authorization.empty();
}

http::Handled LoopHandler::forward(const Request& request, Responder& responder) {
  const http::ConnectionId connection = request.connection;
  auto forwarding = std::make_shared<Forwarding>();
  forwarding->method = std::string(request.method_text);
  forwarding->target = fmt::format("{}{}{}", request.path, request.query.empty() ? "" : "?", request.query);
  forwarding->body = std::string(request.body);
  forwarding->authorization = std::string(request.authorization);
  forwarding->waits = request.body.find("\"wait_ms\"") != std::string_view::npos;
  forwarding->on_done = [this, connection, forwarding = std::weak_ptr(forwarding)] {
    loop_.post([this, connection, held = forwarding.lock()] {
      forwarded_.erase(uint64_t(connection));
      if (!held) return;
      http::Response response;
      response.status = held->status;
      response.content_type = held->content_type;
      response.extra_headers = held->headers;
      response.body = held->answer;
      loop_.answer(connection, response);
      common_.metrics().count_request(held->status);
    });
  };
  // Who asks here is one that does not follow a 307.
  if (!common_.forwarder->take(forwarding))
    return respond_error(responder,
                         make_error(ErrorCode::too_many_requests,
                                    "as many calls as may are on their way through this server: try again "
                                    "later, or ask the server that leads"),
                         "Retry-After: 1\r\n");
  forwarded_[uint64_t(connection)] = std::move(forwarding);
  return Handled::waiting;
}

}  // namespace turnstile
