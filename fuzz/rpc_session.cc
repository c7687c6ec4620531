// A client's bytes on a connection of the gRPC server. What must hold:
// - any bytes are served or end the connection; nothing is read or freed that should not be;
// - what the server says is frames of HTTP/2, on streams that the client has opened, and not much more than
// it was sent.
#include <fcntl.h>
#include <sys/socket.h>

#include "rpc/connection.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

using rpc::Call;
using rpc::Code;
using rpc::Status;

constexpr size_t kLarge = 30'000;  // three of them are more than a window

// All methods answer at once, so that an input is one order of steps. Threads there are none.
const rpc::Methods& methods() {
  const auto echo = [](const std::string& request, Call& call) -> std::optional<Status> {
    call.write({request, nullptr, 0});
    return Status{};
  };
  const auto large = [](const std::string& request, Call& call) -> std::optional<Status> {
    static const std::shared_ptr<const char[]> data(new char[kLarge]());
    for (int i = 0; i < 3; ++i) call.write({request.substr(0, 10), data, kLarge});
    return Status{Code::not_found, request};
  };
  const auto refuse = [](const std::string& request, Call&) -> std::optional<Status> {
    return Status{Code::invalid_argument, request};
  };
  const auto wait = [](const std::string&, Call&) -> std::optional<Status> { return std::nullopt; };
  const auto run = [](Call&) { return Status{}; };
  static const rpc::Methods methods{{"/e", {run, echo}},
                                    {"/l", {run, large}},
                                    {"/r", {run, refuse}},
                                    {"/t", {run, nullptr}},
                                    {"/w", {run, wait}}};
  return methods;
}

// The server's bytes, frame by frame. What a frame says is nghttp2's affair.
class Heard {
 public:
  void take(std::string_view bytes) {
    bytes_ += bytes;
    total_ += bytes.size();
    while (bytes_.size() >= 9) {
      const auto at = [&](size_t i) { return uint32_t(uint8_t(bytes_[i])); };
      const size_t size = at(0) << 16 | at(1) << 8 | at(2);
      TS_CHECK(size <= 1 << 24, "a frame has a size that frames can have");
      TS_CHECK(at(3) <= 9, "the server sends frames that are known");
      const uint32_t stream = (at(5) & 127) << 24 | at(6) << 16 | at(7) << 8 | at(8);
      TS_CHECK(stream == 0 || stream % 2 == 1, "the server opens no streams");
      if (bytes_.size() < 9 + size) return;
      bytes_.erase(0, 9 + size);
    }
  }
  size_t total() const { return total_; }

 private:
  std::string bytes_;
  size_t total_ = 0;
};

constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t how = input.byte();
  std::string said(how % 8 == 0 ? "" : kPreface);
  said += input.rest();

  int ends[2];
  TS_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "there are sockets");
  const UniqueFd client(ends[0]);
  static http::Poller poller;
  static rpc::CallThreads threads(0);
  const rpc::Surroundings surroundings{methods(), threads, poller, 1000, 4, [](uint64_t, int32_t) {}};
  Heard heard;
  const auto listen = [&] {
    static std::array<char, 1 << 18> buffer;
    for (ssize_t got; (got = ::recv(client.get(), buffer.data(), buffer.size(), 0)) > 0;)
      heard.take({buffer.data(), size_t(got)});
  };
  {
    rpc::Connection connection(1, UniqueFd(ends[1]), surroundings);
    if (!connection.start()) return;
    in_pieces(said, how < 128 ? 255 : uint8_t(how * 2), [&](std::string_view piece) {
      if (::send(client.get(), piece.data(), piece.size(), MSG_NOSIGNAL) < 0) return false;
      connection.on_ready(EPOLLIN);
      if (how % 3 != 0) listen();
      connection.on_ready(EPOLLOUT);
      return !connection.broken();
    });
    for (int turn = 0; turn < 4 && !connection.broken(); ++turn) {
      listen();
      connection.on_ready(EPOLLOUT);
    }
  }
  listen();
  TS_CHECK(heard.total() <= 1000 + said.size() * 3 * kLarge / 20,
           "the server says not much more than it was sent");
}

}  // namespace turnstile::fuzz
