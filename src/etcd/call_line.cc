#include "etcd/call_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"

namespace turnstile::etcd {
namespace {

using std::chrono::steady_clock;

constexpr std::string_view kPath = "/etcdserverpb.KV/Txn";
constexpr size_t kFrameHead = 5;  // of gRPC: compressed or not, and the length
constexpr size_t kLongestAnswer =
    1 << 20;  // a transaction's answer tells one revision for each of its operations
constexpr size_t kMostPings = 64, kLongestHeader = 8 << 10;
constexpr int32_t kWindow = 4 << 20;
// For what etcd says between two calls: it is there already, or it is not waited for.
constexpr SteadyTime kAtOnce{};

std::string_view view(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

nghttp2_nv header(std::string_view name, std::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

// grpc-message comes with all but plain letters as %XX.
std::string decoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned letter = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, letter, 16).ptr == text.data() + i + 3) {
      plain.push_back(char(letter));
      i += 2;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

grpc::Status hung_up(const LineSocket& socket) {
  if (socket.timed_out()) return {grpc::StatusCode::DEADLINE_EXCEEDED, "no answer in time"};
  return {grpc::StatusCode::UNAVAILABLE, "the connection broke during the call"};
}

}  // namespace

// Each gets the line as its user data. What they return is nghttp2's: 0 or an error.
struct CallLine::Callbacks {
  static CallLine& of(void* user_data) { return *static_cast<CallLine*>(user_data); }

  static ssize_t on_send(nghttp2_session*, const uint8_t* data, size_t size, int, void* user_data) {
    of(user_data).to_send_.append(view(data, size));
    return ssize_t(size);
  }

  static ssize_t on_read_request(nghttp2_session*, int32_t, uint8_t* room, size_t size, uint32_t* flags,
                                 nghttp2_data_source*, void* user_data) {
    CallLine& self = of(user_data);
    size = std::min(size, self.request_.size() - self.request_sent_);
    std::copy_n(self.request_.data() + self.request_sent_, size, room);
    self.request_sent_ += size;
    if (self.request_sent_ == self.request_.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return ssize_t(size);
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                       const uint8_t* value, size_t value_size, uint8_t, void* user_data) {
    CallLine& self = of(user_data);
    if (frame->hd.stream_id != self.stream_ || value_size > kLongestHeader) return 0;
    const std::string_view key = view(name, name_size);
    if (key == ":status") self.http_status_ = view(value, value_size);
    if (key == "grpc-status") self.status_ = view(value, value_size);
    if (key == "grpc-message") self.message_ = view(value, value_size);
    return 0;
  }

  static int on_data(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t size,
                     void* user_data) {
    CallLine& self = of(user_data);
    if (stream != self.stream_) return 0;
    if (self.response_.size() + size > kLongestAnswer) return NGHTTP2_ERR_CALLBACK_FAILURE;
    self.response_.append(view(data, size));
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    CallLine& self = of(user_data);
    if (frame->hd.type != NGHTTP2_PING || (frame->hd.flags & NGHTTP2_FLAG_ACK)) return 0;
    if (self.pings_.size() == kMostPings) return NGHTTP2_ERR_CALLBACK_FAILURE;
    std::ranges::copy(frame->ping.opaque_data, self.pings_.emplace_back().begin());
    return 0;
  }

  static int on_stream_closed(nghttp2_session*, int32_t stream, uint32_t, void* user_data) {
    if (stream == of(user_data).stream_) of(user_data).ended_ = true;
    return 0;
  }
};

CallLine::CallLine(std::unique_ptr<LineSocket> socket, const std::string& authority, bool tls)
    : socket_(std::move(socket)), authority_(authority), scheme_(tls ? "https" : "http") {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  TS_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0,
           "there is memory");
  nghttp2_session_callbacks_set_send_callback(callbacks, Callbacks::on_send);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_stream_closed);
  // etcd's gRPC sends a PING with every request, to measure the way. An answer of its own would wake etcd
  // once more in the middle of the transaction; with the next request it costs nothing.
  nghttp2_option_set_no_auto_ping_ack(option, 1);
  nghttp2_session* session = nullptr;
  TS_CHECK(nghttp2_session_client_new2(&session, callbacks, this, option) == 0, "there is memory");
  session_.reset(session);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_option_del(option);
  const std::array<nghttp2_settings_entry, 2> settings{{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow},
  }};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kWindow);
}

CallLine::~CallLine() = default;

std::unique_ptr<CallLine> CallLine::open(std::string_view peer, SSL_CTX* tls, const std::string& authority,
                                         SteadyTime until) {
  auto socket = LineSocket::connect(peer, tls, host_of(authority), until);
  if (!socket) return nullptr;
  auto line = std::unique_ptr<CallLine>(new CallLine(std::move(socket), authority, tls != nullptr));
  // Its settings come first: who says something else, or nothing, does not speak HTTP/2.
  if (!line->send(until) || !line->receive(until) || !line->is_usable()) return nullptr;
  return line;
}

bool CallLine::send(SteadyTime until) {
  if (nghttp2_session_send(session_.get()) != 0) return false;
  const bool sent = to_send_.empty() || socket_->send(to_send_, until);
  to_send_.clear();
  return sent && nghttp2_session_want_read(session_.get()) != 0;  // else it has said goodbye to nonsense
}

bool CallLine::receive(SteadyTime until) {
  const std::span<const uint8_t> bytes = socket_->receive(until);
  return !bytes.empty() && nghttp2_session_mem_recv(session_.get(), bytes.data(), bytes.size()) >= 0;
}

bool CallLine::is_usable() {
  if (broken_) return false;
  while (receive(kAtOnce)) {
  }
  for (const auto& ping : pings_) nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_ACK, ping.data());
  pings_.clear();
  broken_ = !socket_->timed_out() || nghttp2_session_check_request_allowed(session_.get()) == 0;
  return !broken_;
}

bool CallLine::tend(SteadyTime until) {
  if (!is_usable()) return false;
  broken_ = !send(until);
  return !broken_;
}

bool CallLine::begin_call(const etcdserverpb::TxnRequest& request, const std::string& token,
                          SteadyTime deadline) {
  const size_t size = request.ByteSizeLong();
  request_.assign(kFrameHead, '\0');
  for (size_t i = 1; i < kFrameHead; ++i) request_[i] = char(size >> (8 * (kFrameHead - 1 - i)));
  if (!request.AppendToString(&request_)) return false;
  request_sent_ = 0;
  response_.clear(), http_status_.clear(), status_.clear(), message_.clear();
  ended_ = false;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
  const std::string timeout = fmt::format("{}m", std::clamp<int64_t>(left.count(), 1, 99'999'999));
  std::vector<nghttp2_nv> headers{header(":method", "POST"),       header(":scheme", scheme_),
                                  header(":path", kPath),          header(":authority", authority_),
                                  header("te", "trailers"),        header("content-type", "application/grpc"),
                                  header("grpc-timeout", timeout), header("hasleader", "true")};
  if (!token.empty()) headers.push_back(header("token", token));
  nghttp2_data_provider provider{};
  provider.read_callback = Callbacks::on_read_request;
  stream_ =
      nghttp2_submit_request(session_.get(), nullptr, headers.data(), headers.size(), &provider, nullptr);
  return stream_ > 0;
}

grpc::Status CallLine::transact(const etcdserverpb::TxnRequest& request, const std::string& token,
                                SteadyTime deadline, etcdserverpb::TxnResponse& response) {
  broken_ = true;  // until it has been answered
  if (!begin_call(request, token, deadline))
    return {grpc::StatusCode::INTERNAL, "the call cannot be written"};
  while (!ended_)
    if (!send(deadline) || !receive(deadline)) return hung_up(*socket_);
  if (status_.empty())
    return {grpc::StatusCode::UNAVAILABLE,
            fmt::format("it ended the call with HTTP status {} alone", http_status_)};
  broken_ = false;
  return outcome(response);
}

grpc::Status CallLine::outcome(etcdserverpb::TxnResponse& response) const {
  int code = int(grpc::StatusCode::UNKNOWN);
  std::from_chars(status_.data(), status_.data() + status_.size(), code);
  if (code != 0) return {grpc::StatusCode(code), decoded(message_)};
  const bool framed = response_.size() >= kFrameHead && response_[0] == 0;
  if (!framed || !response.ParseFromArray(response_.data() + kFrameHead, int(response_.size() - kFrameHead)))
    return {grpc::StatusCode::UNKNOWN, "its answer cannot be read"};
  return grpc::Status::OK;
}

std::unique_ptr<CallLine> LineShelf::take() {
  Locked lock(mutex_);
  lent_ = line_ != nullptr || lent_;
  return std::move(line_);
}

void LineShelf::give_back(std::unique_ptr<CallLine> line) {
  Locked lock(mutex_);
  lent_ = false;
  line_ = std::move(line);
}

bool LineShelf::is_empty() {
  Locked lock(mutex_);
  return !line_ && !lent_;
}

}  // namespace turnstile::etcd
