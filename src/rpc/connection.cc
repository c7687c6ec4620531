// See connection.h. The order of things in one turn: receive() hands bytes to nghttp2, whose callbacks begin
// and feed calls; then send() lets nghttp2 write as much as there is and the socket takes.
#include "rpc/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <exception>

#include "base/check.h"
#include "base/log.h"
#include "rpc/status_text.h"

namespace turnstile::rpc {
namespace {

constexpr size_t kReceiveAtOnce = 256 << 10;
constexpr size_t kSendAtOnce = 1 << 20;
constexpr int kSendsOfATurn = 8;  // then others have theirs
// Two of containerd's messages: it need not wait in the middle of one.
constexpr uint32_t kStreamWindow = 2 << 20;
constexpr int32_t kConnectionWindow = 16 << 20;
constexpr uint32_t kMaxHeaders = 16 << 10;
// Frames that nghttp2 wants to send beside DATA, for each call that there may be: more than a client can
// need.
constexpr size_t kFramesOfCall = 16;
// containerd cancels each Read when it has its bytes, often before the status is there: thousands a second.
constexpr uint64_t kResetsAtOnce = 1 << 20, kResetsOfASecond = 100'000;

nghttp2_nv header(std::string_view name, std::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

// A method that throws (no memory, no threads) fails alone.
template <class Run>
auto guarded(const Run& run) -> decltype(run()) {
  try {
    return run();
  } catch (const std::exception& surprise) {
    log_error("a method failed", {{"error", surprise.what()}});
    return Status{Code::internal, surprise.what()};
  }
}

std::string_view view(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

// Each gets the connection as its user data. What they return is nghttp2's: 0 or an error.
struct Connection::Callbacks {
  static Connection& of(void* user_data) { return *static_cast<Connection*>(user_data); }

  static ssize_t on_send(nghttp2_session*, const uint8_t* data, size_t size, int, void* user_data) {
    Connection& self = of(user_data);
    if (self.outgoing_.size() >= kSendAtOnce) return NGHTTP2_ERR_WOULDBLOCK;
    self.outgoing_.add(view(data, size));
    return ssize_t(size);
  }

  static int on_send_data(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t size,
                          nghttp2_data_source* source, void* user_data) {
    Connection& self = of(user_data);
    if (self.outgoing_.size() >= kSendAtOnce) return NGHTTP2_ERR_WOULDBLOCK;
    TS_CHECK(frame->data.padlen == 0, "nobody asked for padding");
    self.outgoing_.add(view(head, 9));
    static_cast<Stream*>(source->ptr)->send(size, self.outgoing_);
    return 0;
  }

  // How much of the next DATA frame there is; on_send_data() fetches it.
  static ssize_t on_read(nghttp2_session*, int32_t, uint8_t*, size_t size, uint32_t* flags,
                         nghttp2_data_source* source, void* user_data) {
    Stream& stream = *static_cast<Stream*>(source->ptr);
    const Sendable there = stream.sendable();
    if (there.bytes == 0) {
      // The method may have ended while its last bytes waited here for room: nobody else asks any more.
      if (there.finished && !stream.ended) of(user_data).submit_trailers(stream);
      return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    size = std::min(size, there.bytes);
    if (size == there.bytes && there.finished) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      of(user_data).submit_trailers(stream);
    }
    return ssize_t(size);
  }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
      of(user_data).heads_[frame->hd.stream_id];
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                       const uint8_t* value, size_t value_size, uint8_t, void* user_data) {
    const auto head = of(user_data).heads_.find(frame->hd.stream_id);
    if (head == of(user_data).heads_.end()) return 0;  // trailers, which say nothing to us
    head->second.size += name_size + value_size;
    if (head->second.size > kMaxHeaders) return 0;
    const std::string_view key = view(name, name_size);
    if (key == ":path") head->second.path = view(value, value_size);
    if (key == ":method") head->second.method = view(value, value_size);
    if (key == "content-type") head->second.content_type = view(value, value_size);
    return 0;
  }

  static int on_frame_received(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    Connection& self = of(user_data);
    const int32_t id = frame->hd.stream_id;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) self.begin_call(id);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
      if (Stream* stream = self.find(id)) self.request_ended(*stream);
    return 0;
  }

  static int on_data(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* data, size_t size,
                     void* user_data) {
    Connection& self = of(user_data);
    nghttp2_session_consume_connection(session, size);
    Stream* stream = self.find(id);
    if (!stream) {  // the call has ended; the rest of its request is thrown away
      nghttp2_session_consume_stream(session, id, size);
      return 0;
    }
    size_t granted = 0;
    const std::optional<Status> error = stream->take(view(data, size), granted);
    nghttp2_session_consume_stream(session, id, granted);
    if (error) self.end_with(id, *error);
    return 0;
  }

  // The client need not send the rest of a request that has been answered.
  static int on_frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void*) {
    const bool last = frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
    if (last && nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0)
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
  }

  // An answer that nghttp2 will not send must not leave its client waiting.
  static int on_frame_not_sent(nghttp2_session* session, const nghttp2_frame* frame, int, void* user_data) {
    const int32_t id = frame->hd.stream_id;
    if (frame->hd.type == NGHTTP2_HEADERS && of(user_data).find(id))
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
    return 0;
  }

  static int on_stream_closed(nghttp2_session*, int32_t id, uint32_t, void* user_data) {
    Connection& self = of(user_data);
    self.heads_.erase(id);
    if (Stream* stream = self.find(id)) {
      stream->cancel();
      self.streams_.erase(id);
    }
    return 0;
  }
};

Connection::Connection(uint64_t number, UniqueFd socket, const Surroundings& surroundings)
    : number_(number), socket_(std::move(socket)), surroundings_(surroundings) {}

Connection::~Connection() { cancel_all(); }

bool Connection::start() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  TS_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0,
           "there is memory");
  nghttp2_session_callbacks_set_send_callback(callbacks, Callbacks::on_send);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, Callbacks::on_send_data);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::on_frame_received);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::on_frame_sent);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, Callbacks::on_frame_not_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_stream_closed);
  nghttp2_option_set_no_auto_window_update(option, 1);  // we grant room when there is some
  nghttp2_option_set_stream_reset_rate_limit(option, kResetsAtOnce, kResetsOfASecond);
  nghttp2_session* session = nullptr;
  TS_CHECK(nghttp2_session_server_new2(&session, callbacks, this, option) == 0, "there is memory");
  session_.reset(session);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_option_del(option);
  const std::array<nghttp2_settings_entry, 3> settings{{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, surroundings_.max_calls},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMaxHeaders},
  }};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  if (!surroundings_.poller.add(socket_.get(), EPOLLIN, *this)) return false;
  send();
  return !broken_;
}

void Connection::on_ready(uint32_t events) {
  if (broken_) return;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive();
  if (!broken_) send();
  if (broken_ || !waits_for_room_) return;
  // It takes nothing and keeps asking for refusals and acknowledgements: they must not pile up.
  const size_t frames = nghttp2_session_get_outbound_queue_size(session_.get());
  if (frames <= kFramesOfCall * surroundings_.max_calls) return;
  log_warning("a client sends and does not read; it was cut off", {{"frames", frames}});
  broken_ = true;
}

void Connection::receive() {
  static thread_local std::array<uint8_t, kReceiveAtOnce> buffer;
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    broken_ = true;
    return;
  }
  const ssize_t used = nghttp2_session_mem_recv(session_.get(), buffer.data(), size_t(got));
  if (used >= 0) return;
  log_warning("a client does not speak HTTP/2", {{"error", nghttp2_strerror(int(used))}});
  broken_ = true;
}

// More is made only when all that was made before has left: so what lies here has a limit.
void Connection::send() {
  for (int turn = 0; turn < kSendsOfATurn; ++turn) {
    const Outgoing::Sent sent = outgoing_.send_to(socket_.get());
    if (sent == Outgoing::Sent::broken) broken_ = true;
    if (sent != Outgoing::Sent::all) return watch_for_room(!broken_);
    if (nghttp2_session_send(session_.get()) != 0) broken_ = true;
    if (!broken_ && !outgoing_.empty()) continue;
    if (!nghttp2_session_want_read(session_.get()) && !nghttp2_session_want_write(session_.get()))
      broken_ = true;
    return watch_for_room(false);
  }
  watch_for_room(true);
}

void Connection::watch_for_room(bool wanted) {
  if (wanted == waits_for_room_ || broken_) return;
  waits_for_room_ = wanted;
  surroundings_.poller.change(socket_.get(), wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, *this);
}

Stream* Connection::find(int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

void Connection::begin_call(int32_t id) {
  const auto node = heads_.extract(id);
  if (node.empty()) return;
  const Head& head = node.mapped();
  // The stream may outlive its connection, by the thread that runs its method.
  auto stream = std::make_shared<Stream>(
      id, surroundings_.max_message,
      [&shared = surroundings_, connection = number_, id] { shared.something_to_do(connection, id); });
  streams_[id] = stream;
  if (head.size > kMaxHeaders)
    return end_with(id,
                    {Code::resource_exhausted, fmt::format("headers of more than {} bytes", kMaxHeaders)});
  const auto method = surroundings_.methods.find(head.path);
  if (head.method != "POST" || !head.content_type.starts_with("application/grpc"))
    return end_with(id,
                    {Code::invalid_argument, "this is a gRPC service: it takes a POST of application/grpc"});
  if (method == surroundings_.methods.end())
    return end_with(id, {Code::unimplemented, fmt::format("there is no method {}", head.path)});
  stream->method = &method->second;
  if (!stream->method->run_at_once) run_on_thread(*stream);
}

void Connection::request_ended(Stream& stream) {
  if (stream.in_the_middle())
    return end_with(stream.id(), {Code::internal, "the request ended in the middle of a message"});
  stream.end_of_request();
  if (stream.ended || !stream.method || !stream.method->run_at_once) return;
  const std::string* request = stream.first_message();
  std::optional<Status> status;
  if (request) {
    stream.set_at_once(true);
    status = guarded([&] { return stream.method->run_at_once(*request, stream); });
    if (status) stream.finish(std::move(*status));
    stream.set_at_once(false);
  }
  if (status)
    answer(stream);
  else
    run_on_thread(stream);
}

void Connection::run_on_thread(Stream& stream) {
  const std::shared_ptr<Stream> kept = streams_.at(stream.id());
  if (surroundings_.threads.run([kept] { kept->finish(guarded([&] { return kept->method->run(*kept); })); }))
    return;
  end_with(stream.id(), {Code::unavailable, "too many calls at once"});
}

void Connection::resume(int32_t id) {
  Stream* stream = find(id);
  if (!stream || broken_) return;
  if (const size_t grant = stream->take_grant(); grant > 0)
    nghttp2_session_consume_stream(session_.get(), id, grant);
  answer(*stream);
  send();
}

// Begins the answer when there is something to say, and goes on with it.
void Connection::answer(Stream& stream) {
  const Sendable there = stream.sendable();
  if (stream.ended || (there.bytes == 0 && !there.finished)) return;
  if (stream.answer_begun) {
    if (there.bytes == 0) return submit_trailers(stream);      // all has left: nobody else asks for them
    nghttp2_session_resume_data(session_.get(), stream.id());  // fails when it is not deferred: fine
    return;
  }
  if (there.bytes == 0) return end_with(stream.id(), stream.status());
  stream.answer_begun = true;
  const std::array headers{header(":status", "200"), header("content-type", "application/grpc")};
  nghttp2_data_provider provider{};
  provider.source.ptr = &stream;
  provider.read_callback = Callbacks::on_read;
  if (nghttp2_submit_response(session_.get(), stream.id(), headers.data(), headers.size(), &provider) != 0)
    broken_ = true;
}

// The status behind messages. It does not wait for the client to take more of them.
void Connection::submit_trailers(Stream& stream) {
  stream.ended = true;
  const Status status = stream.status();
  const std::string code = fmt::to_string(int(status.code)), message = status_text(status.message);
  const std::array trailers{header("grpc-status", code), header("grpc-message", message)};
  if (nghttp2_submit_trailer(session_.get(), stream.id(), trailers.data(),
                             message.empty() ? 1 : trailers.size()) != 0)
    broken_ = true;
}

// Ends a call: its status is the whole answer, unless there is some of one already.
void Connection::end_with(int32_t id, const Status& status) {
  Stream* stream = find(id);
  if (!stream || stream->ended) return;
  stream->ended = true;
  stream->cancel();
  if (stream->answer_begun) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
    return;
  }
  const std::string code = fmt::to_string(int(status.code)), message = status_text(status.message);
  const std::array headers{header(":status", "200"), header("content-type", "application/grpc"),
                           header("grpc-status", code), header("grpc-message", message)};
  if (nghttp2_submit_response(session_.get(), id, headers.data(), message.empty() ? 3 : headers.size(),
                              nullptr) != 0)
    broken_ = true;
}

void Connection::say_goodbye() {
  if (broken_) return;
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_.get()), NGHTTP2_NO_ERROR, nullptr,
                        0);
  send();
}

void Connection::cancel_all() {
  for (const auto& [id, stream] : streams_) stream->cancel();
}

}  // namespace turnstile::rpc
