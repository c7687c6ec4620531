// A server with a fixed answer: what this folder costs when nobody locks anything.
//
//   bench_http 8099 [loops [certificate key]]       and then, against it and against nginx (Nginx in
//   bench/systems.py): lockbench --protocol nginx --mode pair --connections 64 --port 8099 --server-pid
//   $(pidof bench_http)
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "http/server.h"

namespace {

using namespace turnstile;

class FixedAnswer final : public http::Handler {
 public:
  http::Handled handle(const http::Request&, http::Responder& responder) override {
    http::Response response;
    response.body = R"({"acquired":true,"released":true})";
    responder.respond(response);
    return http::Handled::answered;
  }
  void on_closed(http::ConnectionId) override {}
  void on_timer(http::ConnectionId) override {}
  bool may_leave(uint64_t) override { return true; }
  void on_written(std::span<const http::Receipt>) override {}
  void on_drained(http::ConnectionId) override {}
  std::string error_body(unsigned, std::string_view message) override { return std::string(message); }
};

}  // namespace

int main(int argc, char** argv) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  http::Server server(
      {.listen = {"127.0.0.1:" + std::string(argc > 1 ? argv[1] : "0")},
       .loops = unsigned(argc > 2 ? std::atoi(argv[2]) : 1),
       .limits = {},
       .handler = [](http::Loop&) { return std::make_unique<FixedAnswer>(); },
       .passed = {},
       .tls = {.certificate = argc > 4 ? argv[3] : "", .key = argc > 4 ? argv[4] : "", .client_ca = ""}});
  if (auto started = server.start(); !started) {
    std::fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", server.addresses().front().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  server.shutdown(std::chrono::seconds(1));
}
