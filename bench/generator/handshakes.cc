// handshakes: TLS handshakes against one server, from a few threads, reported as one line of JSON.
//
//   g++ -std=c++20 -O2 -o handshakes bench/generator/handshakes.cc -lssl -lcrypto
//   ./handshakes PORT full|resumed SECONDS [THREADS] [SERVER_PID,...]
//
// Each connects, greets, asks GET /healthz (whose answer brings the ticket along), closes, and begins again.
// What the server spends on it is the difference of its CPU time; the client's own price is the same for
// every server.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> stop{false};
std::atomic<long> done{0}, reused{0}, failed{0};

double cpu_seconds(const std::string& pids) {
  double sum = 0;
  std::stringstream in(pids);
  for (std::string pid; std::getline(in, pid, ',');) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::stringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
    std::string word;
    for (int i = 0; fields >> word; ++i)
      if (i == 11 || i == 12) sum += std::stod(word) / double(sysconf(_SC_CLK_TCK));
  }
  return sum;
}

SSL_SESSION* greet(SSL_CTX* context, int port, SSL_SESSION* session) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  SSL* const ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  if (session) SSL_set_session(ssl, session);
  char buffer[4096];
  const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const bool well = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                    SSL_connect(ssl) == 1 && SSL_write(ssl, request, sizeof request - 1) > 0 &&
                    SSL_read(ssl, buffer, sizeof buffer) > 0;
  if (well && SSL_session_reused(ssl)) ++reused;
  SSL_SESSION* const fresh = well ? SSL_get1_session(ssl) : nullptr;
  if (well) SSL_shutdown(ssl);
  SSL_free(ssl);
  close(fd);
  ++(well ? done : failed);
  return fresh;
}

void work(int port, bool resume) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_SESSION* session = nullptr;
  while (!stop) {
    SSL_SESSION* const fresh = greet(context, port, resume ? session : nullptr);
    SSL_SESSION_free(session);
    session = fresh;
  }
  SSL_SESSION_free(session);
  SSL_CTX_free(context);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "handshakes PORT full|resumed SECONDS [THREADS] [PID,...]\n"), 2;
  signal(SIGPIPE, SIG_IGN);
  const int threads = argc > 4 ? std::stoi(argv[4]) : 2;
  const std::string pids = argc > 5 ? argv[5] : "";
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back(work, std::stoi(argv[1]), std::strcmp(argv[2], "resumed") == 0);
  const auto pause = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  pause(0.5);
  const long before = done, reused_before = reused;
  const double cpu = cpu_seconds(pids);
  const auto since = std::chrono::steady_clock::now();
  pause(std::stod(argv[3]));
  const long count = done - before;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  std::printf(
      "{\"handshakes\":%ld,\"resumed\":%ld,\"failed\":%ld,\"per_second\":%.1f,\"server_cpu_us\":%.1f}\n",
      count, long(reused) - reused_before, long(failed), double(count) / seconds,
      count > 0 ? (cpu_seconds(pids) - cpu) * 1e6 / double(count) : 0.0);
  stop = true;
}
