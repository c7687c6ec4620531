// The requests of one loop: has api make a command of each, the Service carry it out, and the answer leave.
//
// Split over handle_*.cc: what connections are besides requests (polls and bonds), streams (section 7 of
// docs/semantics.md), walks over many resources, info (health, metrics, …).
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/command_reader.h"
#include "engine/effects.h"
#include "http/http.h"
#include "server/admission.h"
#include "server/common.h"
#include "server/connection_state.h"
#include "server/forwarder.h"
#include "service/carry_out.h"
#include "service/service.h"

namespace turnstile {

struct PageFile;

// Threads: only ever used on its loop's; others reach it through post().
// Invariant: a connection is in connections_ exactly while its state is not plain.
class LoopHandler final : public http::Handler, public LoopPort {
 public:
  LoopHandler(Common& common, http::Loop& loop);

  http::Handled handle(const http::Request& request, http::Responder& responder) override;
  void on_closed(http::ConnectionId connection) override;
  void on_timer(http::ConnectionId connection) override;
  bool may_leave(uint64_t gate) override;
  void on_written(std::span<const http::Receipt> receipts) override;
  void on_drained(http::ConnectionId connection) override;
  std::string error_body(unsigned status, std::string_view message) override;

  void post(std::function<void()> task) override { loop_.post(std::move(task)); }
  void answer_poll(const PollAnswer& answer) override;
  void send_events(const std::vector<Delivery>& deliveries) override;
  void open_gate(uint64_t sequence) override { loop_.open_gate(sequence); }
  void tick() override;
  bool wants_ticks() const override { return streams_.load(std::memory_order_relaxed) > 0; }

  // A life of the state begins, or has ended: then what hung on it ends too, and requests get 503.
  void begin_life(Service& service) { service_ = &service; }
  void end_life();
  // These credentials count from now on. What was asked for by who may not do so any more ends.
  void change_credentials(access::CredentialsPtr credentials);
  // 503 to open long polls, an end to streams.
  void shut_down(ErrorCode why);

 private:
  using Request = http::Request;
  using Responder = http::Responder;
  using Handled = http::Handled;

  // loop_handler.cc
  Handled carry_out_one(const Command& command, const Request& request, Responder& responder);
  Handled batch(const BatchCommand& command, const Request& request, Responder& responder);
  // Returns whether the caller may ask for it.
  bool answer_item(const ApiResult<Command>& item);
  Handled respond(const Request& request, Responder& responder, unsigned status);
  Handled respond_text(Responder& responder, std::string_view content_type, std::string_view text,
                       std::string_view more_headers = {});
  // `gate`: what it tells of the state must be safe.
  Handled respond_error(Responder& responder, const ApiError& error, std::string_view more_headers = {},
                        uint64_t gate = 0);
  Handled respond_options(const Request& request, Responder& responder);
  // handle_access.cc
  Handled refuse(const Request& request, Responder& responder, ErrorCode why);
  Handled refuse_login(const Request& request, Responder& responder);
  Handled refuse_command(const Request& request, Responder& responder, access::Barrier barrier,
                         const access::Subject& subject);
  // The error, which is counted.
  ApiError forbidden(access::Barrier barrier, const access::Subject& subject);
  // The audit log's line, one for all refused items of a batch.
  void note_forbidden(const Request& request, const access::Subject& first, uint64_t count);
  void answer_refused(http::ConnectionId connection, const std::string& problem);
  // What stands in the way of this command, if anything does.
  access::Barrier barrier_to(const Command& command) const;
  void note_admin_act(const Request& request, const Command& command, unsigned status);
  bool may_go_on(ConnectionState& state);

  // Why no command can be taken now, if none can. `reads`: one that changes nothing.
  std::optional<ErrorCode> why_not(bool reads) const;
  // Clears what the next call of the engine fills.
  Effects& fresh();
  // The last call's events wait for the answer to this connection; everything else that it caused goes on.
  void settle(http::ConnectionId connection);
  void settle_without_answer();

  // handle_bonds.cc
  Handled wait(const LockRequest& request, http::ConnectionId connection);
  void note_bond(http::ConnectionId connection, const LaneName& lane, const Requester& who);
  void forget_bond(http::ConnectionId connection, const LaneName& lane, const Requester& who);
  void erase_if_plain(http::ConnectionId connection);
  bool end_waiting(uint64_t id);
  void resolve_poll(const http::Receipt& receipt);
  // The number of a receipt is a step, or with this bit the answer of a poll: and then a key of unwritten_,
  // or 0.
  static constexpr uint64_t kPollReceipt = uint64_t(1) << 63;
  // A grant whose answer may still be lost with its connection; then nobody knows of it.
  struct Grant {
    Errand errand;
    Token token;
  };

  // handle_streams.cc
  Handled subscribe(SubscribeCommand command, const Request& request, Responder& responder);
  Handled events(const EventsRequest& wanted, const Request& request, Responder& responder);
  Subscribed join(const Request& request, const Filter& filter);
  Handled start_stream(const Request& request, Responder& responder, std::unique_ptr<StreamState> stream,
                       const Subscribed& subscribed, std::string_view state);
  void end_stream(http::ConnectionId connection);
  void close_stream(const StreamState& stream, http::ConnectionId connection);
  void send_comments();

  // handle_walks.cc: a request that is carried out in slices; one of the two it is
  struct Walk {
    http::ConnectionId connection{};
    std::unique_ptr<ListWalk> list;
    std::unique_ptr<ReleaseNodeWalk> release;
    std::string node;  // of `release`
  };
  Handled list(ListCommand command, const Request& request, Responder& responder);
  Handled release_node(const ReleaseNodeCommand& command, const Request& request, Responder& responder);
  Handled begin_walk(Walk walk, const Request& request, Responder& responder);
  bool go_on(Walk& walk);
  unsigned write_answer(const Walk& walk);
  void walk_on();

  // handle_info.cc
  Handled info(Path path, const Request& request, Responder& responder);
  Handled summary(const Request& request, Responder& responder);
  Handled page_file(const PageFile* file, bool varies, const Request& request, Responder& responder);
  std::string version() const;
  Handled readiness(const Request& request, Responder& responder);

  // handle_standby.cc: what a server says while another one leads, or none does
  Handled stand_by(const Request& request, Responder& responder);
  Handled refer(const Request& request, Responder& responder, const std::string& leader);
  bool can_forward(const Request& request) const;
  Handled forward(const Request& request, Responder& responder);

  Common& common_;
  http::Loop& loop_;
  Service* service_ = nullptr;  // none: 503
  Admission admission_;
  CommandReader reader_;
  Effects effects_;
  std::string body_;
  std::vector<http::Receipt> receipts_;  // for the answer in the making
  std::unordered_map<uint64_t, ConnectionState> connections_;
  std::unordered_map<uint64_t, Grant> unwritten_;
  uint64_t last_grant_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Forwarding>> forwarded_;  // by connection
  std::deque<Walk> walks_;                                               // the next is at the front
  std::vector<StepId> answered_;
  std::atomic<size_t> streams_{0};
};

}  // namespace turnstile
