#include "cli/exec_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "base/check.h"

namespace turnstile::cli {
namespace {

static_assert(std::is_trivially_copyable_v<Order> && std::is_trivially_copyable_v<Notice>);
constexpr size_t kMost = 64 * 1024;  // a message; the longest text in one is an error of 4 KiB

bool send_bytes(int fd, const std::string& bytes) {
  ssize_t sent;
  do {
    sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == ssize_t(bytes.size());
}

template <class Message>
std::string bytes_of(const Message& message) {
  return {reinterpret_cast<const char*>(&message), sizeof message};
}

std::optional<std::string> receive_bytes(int fd) {
  std::string bytes(kMost, '\0');
  ssize_t got;
  do {
    got = recv(fd, bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  bytes.resize(size_t(got));
  return bytes;
}

template <class Message>
std::optional<Message> read_front(const std::string& bytes) {
  Message message;
  if (bytes.size() < sizeof message) return std::nullopt;
  std::memcpy(&message, bytes.data(), sizeof message);
  return message;
}

}  // namespace

ChannelEnds make_channel() {
  std::array<int, 2> ends{};
  TS_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0,
           "there is a pair of sockets");
  return {.cli = UniqueFd(ends[0]), .supervisor = UniqueFd(ends[1])};
}

bool send_order(int fd, const Order& order, const std::string& payload) {
  return send_bytes(fd, bytes_of(order) + payload);
}

bool send_notice(int fd, const Notice& notice) { return send_bytes(fd, bytes_of(notice)); }

std::optional<ReceivedOrder> receive_order(int fd) {
  const std::optional<std::string> bytes = receive_bytes(fd);
  if (!bytes) return std::nullopt;
  const std::optional<Order> order = read_front<Order>(*bytes);
  if (!order) return std::nullopt;
  return ReceivedOrder{.order = *order, .payload = bytes->substr(sizeof(Order))};
}

std::optional<Notice> receive_notice(int fd) {
  const std::optional<std::string> bytes = receive_bytes(fd);
  return bytes ? read_front<Notice>(*bytes) : std::nullopt;
}

}  // namespace turnstile::cli
