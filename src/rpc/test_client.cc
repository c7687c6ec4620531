// See test_client.h.
#include "rpc/test_client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>

#include "base/check.h"
#include "rpc/message_reader.h"

namespace turnstile::rpc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTooLong{30};

std::string_view view(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::string framed(std::string_view message) {
  const auto prefix = prefix_of(message.size());
  return std::string(prefix.data(), prefix.size()) + std::string(message);
}

UniqueFd connect_to(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  TS_CHECK(socket.size() < sizeof address.sun_path, "a test's path is short");
  std::memcpy(address.sun_path, socket.data(), socket.size());
  // Blocking while it connects: the server may have a queue at its door.
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
  if (fd.is_open()) ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  return fd;
}

int Answer::status() const {
  for (const auto* fields : {&trailers, &headers})
    if (const auto found = fields->find("grpc-status"); found != fields->end())
      return std::stoi(found->second);
  return -1;
}

std::string Answer::text() const {
  for (const auto* fields : {&trailers, &headers})
    if (const auto found = fields->find("grpc-message"); found != fields->end()) return found->second;
  return {};
}

std::vector<std::string> Answer::messages() const {
  MessageReader reader(SIZE_MAX);
  std::vector<std::string> all;
  std::string_view rest = bytes;
  while (auto message = reader.next(rest)) all.push_back(std::move(*message));
  return all;
}

struct TestClient::Callbacks {
  static TestClient& of(void* user_data) { return *static_cast<TestClient*>(user_data); }
  static Call* call_of(void* user_data, int32_t id) {
    const auto found = of(user_data).calls_.find(id);
    return found == of(user_data).calls_.end() ? nullptr : found->second.get();
  }

  static ssize_t on_read(nghttp2_session*, int32_t, uint8_t* to, size_t size, uint32_t* flags,
                         nghttp2_data_source* source, void*) {
    Call& call = *static_cast<Call*>(source->ptr);
    if (call.unsent() == 0 && !call.ended) return NGHTTP2_ERR_DEFERRED;
    size = call.request.copy(reinterpret_cast<char*>(to), size, call.sent);
    call.sent += size;
    if (call.unsent() == 0 && call.ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return ssize_t(size);
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                       const uint8_t* value, size_t value_size, uint8_t, void* user_data) {
    Call* call = call_of(user_data, frame->hd.stream_id);
    if (!call) return 0;
    auto& fields = frame->headers.cat == NGHTTP2_HCAT_RESPONSE ? call->answer.headers : call->answer.trailers;
    fields[std::string(view(name, name_size))] = view(value, value_size);
    return 0;
  }
  static int on_data(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
                     void* user_data) {
    if (Call* call = call_of(user_data, id)) call->answer.bytes += view(data, size);
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    if (frame->hd.type == NGHTTP2_GOAWAY) of(user_data).goaway_ = true;
    return 0;
  }
  static int on_close(nghttp2_session*, int32_t id, uint32_t code, void* user_data) {
    if (Call* call = call_of(user_data, id)) {
      call->answer.ended = true;
      call->answer.reset = code;
    }
    return 0;
  }
};

TestClient::TestClient(const std::string& socket, Options options)
    : socket_(connect_to(socket)), deaf_to_settings_(!options.acknowledges) {
  if (!socket_.is_open()) gone_ = true;
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_option_new(&option);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_close);
  if (!options.grants) nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_peer_max_concurrent_streams(option, 1 << 20);  // until the server has said otherwise
  nghttp2_option_set_max_send_header_block_length(option, 1 << 20);
  nghttp2_session* session = nullptr;
  TS_CHECK(nghttp2_session_client_new2(&session, callbacks, this, option) == 0, "there is memory");
  session_.reset(session);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_option_del(option);
  const nghttp2_settings_entry entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options.window};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &entry, 1);
  // The connection's window is out of the way: a test's call has a window of its own.
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, INT32_MAX);
}

TestClient::~TestClient() = default;

int32_t TestClient::begin(const std::vector<std::pair<std::string, std::string>>& headers) {
  std::vector<nghttp2_nv> fields;
  for (const auto& [name, value] : headers)
    fields.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                      reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
                      NGHTTP2_NV_FLAG_NONE});
  auto call = std::make_unique<Call>();
  nghttp2_data_provider provider{};
  provider.source.ptr = call.get();
  provider.read_callback = Callbacks::on_read;
  const int32_t id =
      nghttp2_submit_request(session_.get(), nullptr, fields.data(), fields.size(), &provider, nullptr);
  TS_CHECK(id > 0, "a request can be made");
  calls_[id] = std::move(call);
  flush();
  return id;
}

void TestClient::send(int32_t id, std::string_view bytes) {
  calls_.at(id)->request += bytes;
  nghttp2_session_resume_data(session_.get(), id);
  flush();
}

void TestClient::end(int32_t id) {
  calls_.at(id)->ended = true;
  nghttp2_session_resume_data(session_.get(), id);
  flush();
}

void TestClient::reset(int32_t id) {
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  flush();
}

size_t TestClient::unsent(int32_t id) const { return calls_.at(id)->unsent(); }

int32_t TestClient::room(int32_t id) const {
  return std::min(nghttp2_session_get_stream_remote_window_size(session_.get(), id),
                  nghttp2_session_get_remote_window_size(session_.get()));
}

Answer TestClient::call(const std::string& path, std::string_view message) {
  const int32_t id = begin(path);
  send(id, framed(message));
  end(id);
  EXPECT_TRUE(await_end(id)) << path;
  return answer(id);
}

bool TestClient::await(const std::function<bool()>& condition) {
  const auto until = Clock::now() + kTooLong;
  while (true) {
    flush();
    if (condition()) return true;
    if (gone_ || Clock::now() >= until) return false;
    pollfd ready{socket_.get(), short((reads_ ? POLLIN : 0) | (unsent_.empty() ? 0 : POLLOUT)), 0};
    ::poll(&ready, 1, reads_ ? 1000 : 5);  // one that does not read waits for others' doings
    if (reads_) receive();
  }
}

void TestClient::flush() {
  while (!gone_) {
    if (unsent_.empty()) {
      const uint8_t* data = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_.get(), &data);
      if (size <= 0) return;
      const std::string_view frame = view(data, size_t(size));
      const bool acknowledgement = frame.size() == 9 && frame[3] == NGHTTP2_SETTINGS && frame[4] == 1;
      if (acknowledgement && deaf_to_settings_) continue;
      unsent_ = frame;
      sent_ += frame;
    }
    const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) {
      if (!reads_) gone_ = true;
      return unsent_.clear();  // what it has said before is still to be read
    }
    unsent_.erase(0, size_t(sent));
  }
}

void TestClient::receive() {
  std::array<uint8_t, 65536> buffer;
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0 || nghttp2_session_mem_recv(session_.get(), buffer.data(), size_t(got)) < 0) gone_ = true;
}

}  // namespace turnstile::rpc
