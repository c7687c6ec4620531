#include "http/test_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <future>

#include "base/check.h"
#include "http/peer.h"
#include "http/test_certificates.h"

namespace turnstile::http {
namespace {

constexpr int kPatienceSeconds = 30;
constexpr auto kPatience = std::chrono::seconds(kPatienceSeconds);

int connect_to(const std::string& address, int receive_buffer) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (address.starts_with("https://")) return connect_to(address.substr(8), receive_buffer);
  if (address.starts_with("unix:")) {
    auto& to = reinterpret_cast<sockaddr_un&>(storage);
    to.sun_family = AF_UNIX;
    std::strncpy(to.sun_path, address.c_str() + 5, sizeof to.sun_path - 1);
    size = sizeof to;
  } else if (address.starts_with("[")) {
    auto& to = reinterpret_cast<sockaddr_in6&>(storage);
    to.sin6_family = AF_INET6;
    to.sin6_addr = in6addr_loopback;
    to.sin6_port = htons(uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
    size = sizeof to;
  } else {
    auto& to = reinterpret_cast<sockaddr_in&>(storage);
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
    size = sizeof to;
  }
  const int fd = ::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0) ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const int result = ::connect(fd, reinterpret_cast<const sockaddr*>(&storage), size);
  TS_CHECK(result == 0, "a test's server can be connected to");
  return fd;
}

size_t content_length(const std::string& head) {
  const size_t at = head.find("Content-Length: ");
  return at == head.npos ? 0 : std::stoul(head.substr(at + 16));
}

}  // namespace

Client::Client(const std::string& address, const ClientTls& tls, int receive_buffer)
    : fd_(connect_to(address, receive_buffer)) {
  if (address.starts_with("https://")) greet(tls);
}

Client::~Client() {
  SSL_free(ssl_);
  if (fd_ >= 0) ::close(fd_);
}

void Client::greet(const ClientTls& tls) {
  ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  if (tls.version != 0) {
    SSL_CTX_set_min_proto_version(context, tls.version);
    SSL_CTX_set_max_proto_version(context, tls.version);
  }
  if (tls.ciphers) SSL_CTX_set_cipher_list(context, tls.ciphers);
  if (!tls.certificate.empty()) {
    SSL_CTX_use_certificate_chain_file(context, tls.certificate.c_str());
    SSL_CTX_use_PrivateKey_file(context, tls.key.c_str(), SSL_FILETYPE_PEM);
  }
  ssl_ = SSL_new(context);
  SSL_CTX_free(context);
  if (!tls.protocols.empty())
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(tls.protocols.data()),
                        unsigned(tls.protocols.size()));
  if (tls.resume) SSL_set_session(ssl_, tls.resume);
  if (tls.before_last) {
    SSL_set_msg_callback(ssl_,
                         [](int writes, int, int type, const void* bytes, size_t size, SSL*, void* act) {
                           if (writes && type == SSL3_RT_HANDSHAKE && size > 0 &&
                               *static_cast<const char*>(bytes) == SSL3_MT_FINISHED)
                             (*static_cast<const std::function<void()>*>(act))();
                         });
    SSL_set_msg_callback_arg(ssl_, const_cast<std::function<void()>*>(&tls.before_last));
  }
  SSL_set_fd(ssl_, fd_);
  greeted_ = SSL_connect(ssl_) == 1;
  ERR_clear_error();
}

ssl_session_st* Client::session() { return SSL_get1_session(ssl_); }

bool tests_speak_tls() { return ::getenv("TURNSTILE_TEST_TLS") != nullptr; }

bool Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ssl_ ? SSL_write(ssl_, bytes.data(), int(bytes.size()))
                               : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(size_t(count));
  }
  return true;
}

void Client::half_close() {
  if (ssl_) SSL_shutdown(ssl_);
  ::shutdown(fd_, SHUT_WR);
}

void Client::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(fd_);
  fd_ = -1;
}

bool Client::read_more() {
  char bytes[65536];
  const ssize_t count = ssl_ ? SSL_read(ssl_, bytes, sizeof bytes) : ::recv(fd_, bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) ADD_FAILURE() << "nothing came for too long";
  if (count <= 0) return false;
  input_.append(bytes, size_t(count));
  return true;
}

bool Client::take(size_t most) {
  std::string bytes(most, '\0');
  return (ssl_ ? SSL_read(ssl_, bytes.data(), int(most)) : ::recv(fd_, bytes.data(), most, 0)) > 0;
}

std::optional<Answer> Client::receive(bool has_body) {
  size_t end = 0;
  while ((end = input_.find("\r\n\r\n")) == input_.npos) {
    if (!read_more()) return std::nullopt;
  }
  Answer answer;
  answer.head = input_.substr(0, end + 4);
  answer.status = unsigned(std::stoul(answer.head.substr(9, 3)));
  const size_t size = has_body ? content_length(answer.head) : 0;
  while (input_.size() < end + 4 + size) {
    if (!read_more()) return std::nullopt;
  }
  answer.body = input_.substr(end + 4, size);
  input_.erase(0, end + 4 + size);
  return answer;
}

std::string Client::receive_all() {
  while (read_more()) {
  }
  return std::exchange(input_, {});
}

bool Client::receive_until(std::string_view text) {
  while (input_.find(text) == input_.npos) {
    if (!read_more()) return false;
  }
  return true;
}

bool Client::is_at_end() { return input_.empty() && !read_more() && input_.empty(); }

bool Client::has_input() {
  pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
  if (!input_.empty()) return true;
  if (!ssl_) return ::poll(&waiting, 1, 0) > 0;
  // What has come may be a ticket, which is nothing to the test.
  const int flags = ::fcntl(fd_, F_GETFL);
  ::fcntl(fd_, F_SETFL, flags | O_NONBLOCK);
  char byte = 0;
  const int result = SSL_peek(ssl_, &byte, 1);
  const bool nothing = result <= 0 && SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ;
  ::fcntl(fd_, F_SETFL, flags);
  return !nothing;
}

void TestHandler::Log::add(std::string line) {
  const std::lock_guard lock(mutex);
  lines.push_back(std::move(line));
  changed.notify_all();
}

bool TestHandler::Log::await(const std::function<bool(Log&)>& condition) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, kPatience, [&] { return condition(*this); });
}

bool TestHandler::Log::await_line(const std::string& line) {
  return await([&](Log& log) { return std::ranges::find(log.lines, line) != log.lines.end(); });
}

size_t TestHandler::Log::count(const std::string& line) {
  const std::lock_guard lock(mutex);
  return size_t(std::ranges::count(lines, line));
}

// /echo      METHOD path?query body, and the headers that a Request has
// /wait      waits; /wait?MS also sets a timer
// /self      answers itself by Loop::answer() and says that it waits
// /wake?ID   answers the waiting request of that connection, then as /echo
// /watch     answers, and asks to be told when the connection goes
// /gated?N   the same as /echo, behind N
// /stream    a stream; /stream?N behind N
// /peer      who asks: "plain" or "tls", the address, the user or "-", the certificate's name
// /large?N   N bytes
// /close     answers and closes
// /leave     closes and answers
Handled TestHandler::handle(const Request& request, Responder& responder) {
  const std::string path(request.path), query(request.query);
  log_.add(path);
  Response response;
  std::string body;
  const Receipt receipt{request.connection, 1, {}};
  response.receipts = {&receipt, 1};
  if (path == "/wait") {
    const std::lock_guard lock(log_.mutex);
    log_.last_waiting = request.connection;
    log_.changed.notify_all();
    if (!query.empty()) loop_.set_timer(request.connection, std::chrono::milliseconds(std::stoi(query)));
    return Handled::waiting;
  }
  if (path == "/self" || path == "/wake") {
    response.body = "from within";
    const ConnectionId waiting = path == "/self" ? request.connection : ConnectionId(std::stoull(query));
    EXPECT_TRUE(loop_.answer(waiting, response));
    if (path == "/self") return Handled::waiting;
  }
  if (path == "/stream") {
    response.content_type = "text/event-stream";
    response.body = ": hello\n\n";
    response.gate = query.empty() ? 0 : std::stoull(query);
    responder.start_stream(response);
    const std::lock_guard lock(log_.mutex);
    log_.last_stream = request.connection;
    log_.changed.notify_all();
    return Handled::stream;
  }
  if (path == "/watch") loop_.watch(request.connection);
  if (path == "/gated") response.gate = std::stoull(query);
  if (path == "/close") response.close = true;
  if (path == "/leave") loop_.close(request.connection);
  if (path == "/peer") {
    const Peer& peer = *request.peer;
    body = (peer.tls ? "tls " : "plain ") + peer.address + ' ' +
           (peer.local_unix ? std::to_string(peer.uid) : "-") + ' ' + peer.certificate_name;
  } else if (path == "/large") {
    body.assign(std::stoul(query), 'x');
  } else {
    body.append(request.method_text).append(" ").append(path).append("?").append(query).append(" ");
    body.append(request.body).append("|").append(request.host).append("|").append(request.origin);
    body.append("|").append(request.authorization).append("|").append(request.last_event_id);
  }
  response.body = body;
  responder.respond(response);
  return Handled::answered;
}

void TestHandler::on_written(std::span<const Receipt> receipts) {
  for (const Receipt& receipt : receipts) {
    EXPECT_NE(receipt.connection, ConnectionId::none);
    log_.add("written");
  }
}

void TestHandler::on_closed(ConnectionId) { log_.add("closed"); }

void TestHandler::on_timer(ConnectionId connection) {
  log_.add("timer");
  Response response;
  response.body = "time is over";
  loop_.answer(connection, response);
}

std::string TestHandler::error_body(unsigned status, std::string_view message) {
  return "{\"status\":" + std::to_string(status) + ",\"error\":\"" + std::string(message) + "\"}";
}

TestServer::TestServer(Limits limits, unsigned loops, std::string address, TlsFiles tls) {
  static const TestCertificates certificates;
  if (tls.certificate.empty() && tests_speak_tls()) tls = certificates.server();
  server_ = std::make_unique<Server>(
      ServerSettings{.listen = {std::move(address)},
                     .loops = loops,
                     .limits = std::move(limits),
                     .handler = [this](Loop& loop) { return std::make_unique<TestHandler>(loop, log_); },
                     .tls = std::move(tls)});
  const auto started = server_->start();
  TS_CHECK(started.has_value(), started ? "" : started.error().message);
}

void TestServer::on_loop(const std::function<void(Loop&)>& act, size_t loop) {
  std::promise<void> done;
  server_->loop(loop).post([&] {
    act(server_->loop(loop));
    done.set_value();
  });
  done.get_future().wait();
}

bool TestServer::answer_waiting(std::string_view body, uint64_t gate) {
  const ConnectionId waiting = await_waiting();
  bool result = false;
  on_loop([&](Loop& loop) {
    Response response;
    const Receipt receipt{waiting, 1, {}};
    response.body = body;
    response.gate = gate;
    response.receipts = {&receipt, 1};
    result = loop.answer(waiting, response);
  });
  return result;
}

void TestServer::open_gate(uint64_t gate) {
  on_loop([&](Loop& loop) {
    log_.open = gate;
    loop.open_gate(gate);
  });
}

Streamed TestServer::stream(ConnectionId stream, const std::string& bytes) {
  Streamed result = Streamed::gone;
  on_loop([&](Loop& loop) { result = loop.stream(stream, std::make_shared<const std::string>(bytes)); });
  return result;
}

ConnectionId TestServer::await_waiting() {
  EXPECT_TRUE(log_.await([](auto& log) { return log.last_waiting != ConnectionId::none; }));
  const std::lock_guard lock(log_.mutex);
  return std::exchange(log_.last_waiting, ConnectionId::none);
}

ConnectionId TestServer::await_stream() {
  EXPECT_TRUE(log_.await([](auto& log) { return log.last_stream != ConnectionId::none; }));
  const std::lock_guard lock(log_.mutex);
  return std::exchange(log_.last_stream, ConnectionId::none);
}

std::unique_ptr<Client> TestServer::connect_with(std::string_view bytes) {
  std::unique_ptr<Client> client;
  if (address().starts_with("https://")) {
    // The loop must answer the greeting; then it is held until everything has come that follows it.
    const auto held = std::make_shared<std::promise<void>>(), sent = std::make_shared<std::promise<void>>();
    client = std::make_unique<Client>(address(), ClientTls{.before_last = [&] {
                                        server_->loop(0).post([held, sent] {
                                          held->set_value();
                                          sent->get_future().wait();
                                        });
                                        held->get_future().wait();
                                      }});
    client->send(bytes);
    sent->set_value();
    return client;
  }
  on_loop([&](Loop&) {  // which accepts nobody meanwhile
    client = std::make_unique<Client>(address());
    client->send(bytes);
  });
  return client;
}

}  // namespace turnstile::http
