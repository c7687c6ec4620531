// The requests of one loop: finds the call behind a path, asks the engine, writes the answer.
//
// Split over handle_*.cc: locks (section 2 to 6 of docs/semantics.md), streams (7), info (health, metrics,
// …).
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/error.h"
#include "api/paths.h"
#include "api/query.h"
#include "api/request_parser.h"
#include "engine/effects.h"
#include "http/http.h"
#include "server/app.h"
#include "server/connection_state.h"

namespace turnstile {

// Threads: only ever used on its loop's; others reach it through App::distribute() and posted tasks.
// Invariant: a connection is in connections_ exactly while it polls, streams or is a bond.
class LoopHandler : public http::Handler {
 public:
  LoopHandler(App& app, http::Loop& loop);

  http::Outcome handle(const http::Request& request, http::Responder& responder) override;
  void on_closed(http::ConnectionId connection) override;
  void on_timer(http::ConnectionId connection) override;
  void on_written() override;
  std::string error_body(unsigned status, std::string_view message) override;

  // On the loop's thread:
  void deliver(const ReadyAnswer& answer);
  void deliver_events(const std::vector<Delivery>& deliveries);
  void release(uint64_t sequence);
  void tick();  // now and then
  // 503 to open long polls, an end to streams.
  void shut_down();

  unsigned index() const { return loop_.index(); }

 private:
  using Request = http::Request;
  using Responder = http::Responder;
  using Outcome = http::Outcome;

  // A step whose answer waits to be written, or a grant whose answer does.
  struct Unwritten {
    http::ConnectionId connection;
    uint64_t sequence;
    uint64_t step;
    Time granted_at;
  };

  Outcome route(Path path, const Request& request, Responder& responder);
  // handle_locks.cc
  Outcome lock(const Request& request, Responder& responder);
  Outcome unlock(const Request& request, Responder& responder);
  Outcome renew(const Request& request, Responder& responder);
  Outcome cancel(const Request& request, Responder& responder);
  Outcome batch(const Request& request, Responder& responder);
  void answer_batch_item(const BatchItem& item);
  Outcome status(const Request& request, Responder& responder);
  Outcome list(const Request& request, Responder& responder);
  Outcome break_hold(const Request& request, Responder& responder);
  Outcome references(const Request& request, Responder& responder);
  Outcome change_reference(const Request& request, Responder& responder, bool add);
  Outcome release_node(const Request& request, Responder& responder);
  void note_bond(http::ConnectionId connection, const LaneName& lane, const Requester& who);
  void forget_bond(http::ConnectionId connection, const LaneName& lane, const Requester& who);
  // handle_streams.cc
  Outcome subscribe(const Request& request, Responder& responder);
  Outcome events(const Request& request, Responder& responder);
  Outcome start_stream(const Request& request, Responder& responder, std::string_view first);
  std::optional<uint64_t> next_resume(const Subscribed& subscribed, std::string& first);
  void send_comments();
  // handle_info.cc
  Outcome info(Path path, Responder& responder);

  void note_unwritten(const Unwritten& entry);

  // Answers with `body_` and what the last call of the engine caused.
  Outcome respond(const Request& request, Responder& responder, unsigned status);
  Outcome respond_text(Responder& responder, std::string_view content_type, std::string_view text);
  Outcome respond_error(Responder& responder, const ApiError& error, std::string_view more_headers = {});
  // Whether new work can be taken; otherwise it has been refused.
  bool accepts_work(Responder& responder);
  // Clears what the next call of the engine fills.
  Effects& fresh() {
    effects_.clear();
    body_.clear();
    return effects_;
  }
  // Passes on what the last call caused; its events wait until the connection's answer is written.
  void settle(http::ConnectionId connection);
  void settle_without_answer();
  // An answer is about to be given that may leave when so much is durable.
  void await(uint64_t sequence);
  void erase_if_plain(http::ConnectionId connection);
  void log_decision(std::string_view call, const LaneName& lane, const Requester& who, unsigned status);

  App& app_;
  http::Loop& loop_;
  RequestParser parser_;
  QueryParser query_;
  Effects effects_;
  std::string body_;
  std::unordered_map<uint64_t, ConnectionState> connections_;
  std::deque<Unwritten> unwritten_;
  std::vector<StepId> written_;
  uint64_t released_ = 0;
};

}  // namespace turnstile
