// What the library costs: lock + unlock through LockClient, against the same two exchanges written by hand on
// one blocking socket, in turns, in one run.
//
//   build/bench/client_bench HOST:PORT [ROUNDS]
//
// A program of its own rather than a Google Benchmark: the two must alternate, so that a busy machine slows
// both.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "client/random_id.h"
#include "turnstile/lock_client.h"

namespace {

using Clock = std::chrono::steady_clock;

class RawConnection {
 public:
  explicit RawConnection(const std::string& address) {
    const size_t colon = address.rfind(':');
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &found) !=
        0) {
      std::exit(2);
    }
    socket_ = socket(found->ai_family, SOCK_STREAM, 0);
    if (connect(socket_, found->ai_addr, found->ai_addrlen) != 0) std::exit(2);
    freeaddrinfo(found);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    host_ = address;
  }
  ~RawConnection() { close(socket_); }

  std::string post(const char* path, const std::string& body) {
    const std::string request = fmt::format("POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{}",
                                            path, host_, body.size(), body);
    if (send(socket_, request.data(), request.size(), MSG_NOSIGNAL) != ssize_t(request.size())) std::exit(2);
    std::string answer;
    char buffer[4096];
    for (;;) {
      const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) std::exit(2);
      answer.append(buffer, size_t(got));
      const size_t head = answer.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const size_t length = answer.find("Content-Length: ");
      const size_t size = std::strtoul(answer.c_str() + length + 16, nullptr, 10);
      if (answer.size() >= head + 4 + size) return answer;
    }
  }

 private:
  int socket_;
  std::string host_;
};

void raw_pair(RawConnection& raw, const std::string& resource) {
  const std::string who =
      fmt::format(R"("type":"mutex","resource_id":"{}","node_id":"bench","request_id":"{}")", resource,
                  turnstile::client::new_request_id());
  const std::string locked = raw.post("/lock", "{" + who + R"(,"lease_ms":10000})");
  const size_t token = locked.find("\"token\":");
  if (token == std::string::npos) std::exit(2);
  const std::string released =
      raw.post("/unlock", fmt::format(R"({{{},"token":{},"success":true}})", who,
                                      std::strtoull(locked.c_str() + token + 8, nullptr, 10)));
  if (released.find("\"released\":true") == std::string::npos) std::exit(2);
}

void client_pair(turnstile::LockClient& client, const std::string& resource) {
  auto result = client.lock({.operation = "mutex", .resource = resource});
  if (!result || !result->acquired()) std::exit(2);
  if (!result->hold.release(turnstile::WorkResult::succeeded())) std::exit(2);
}

// Of this thread, in microseconds: what the other side and the rest of the machine do is not in it.
double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) * 1e6 + double(time.tv_nsec) / 1e3;
}

// What each turn took, by the clock and of the processor, for a pair.
struct Turns {
  std::vector<double> took, processor;
};

double median(std::vector<double>& values) {
  std::ranges::nth_element(values, values.begin() + ptrdiff_t(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: client_bench HOST:PORT [ROUNDS]\n");
    return 2;
  }
  const std::string address = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 400;
  constexpr int kPairs = 50;  // a turn
  RawConnection raw(address);
  auto client = turnstile::LockClient::create({.servers = {"http://" + address}, .node_id = "bench"});
  Turns by_hand, by_client;
  const auto measure = [](Turns& into, const auto& pair) {
    const auto start = Clock::now();
    const double busy = processor_time();
    for (int i = 0; i < kPairs; ++i) pair();
    into.processor.push_back((processor_time() - busy) / kPairs);
    into.took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kPairs);
  };
  for (int i = 0; i < rounds; ++i) {
    const std::string resource = fmt::format("bench-{}", i);
    measure(by_hand, [&] { raw_pair(raw, resource); });
    measure(by_client, [&] { client_pair(*client, resource); });
  }
  const auto print = [&](const char* what, std::vector<double>& hand, std::vector<double>& library) {
    const double first = median(hand), second = median(library);
    fmt::print(
        "lock + unlock, median of {} turns of {}, {}: raw {:.1f} us, LockClient {:.1f} us, ratio {:.2f}\n",
        rounds, kPairs, what, first, second, second / first);
  };
  print("time", by_hand.took, by_client.took);
  print("processor time of the caller", by_hand.processor, by_client.processor);
}
