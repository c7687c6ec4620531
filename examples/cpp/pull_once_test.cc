// How to test a program that uses the library: a server in this process, and no network.
#include "pull_once.h"

#include <turnstile/fake_server.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>

namespace {

void check(bool good, const char* what) {
  std::printf("%s: %s\n", good ? "ok" : "FAILED", what);
  if (!good) std::exit(1);
}

std::string succeed(turnstile::Hold&) { return ""; }
std::string fail(turnstile::Hold&) { return "no space left"; }

}  // namespace

int main() {
  turnstile::FakeServer server;
  auto a = server.client("node-a"), b = server.client("node-b");
  std::string why;

  check(pull_once(a, "layer-1", succeed, why) == Pulled::ran, "the first node pulls");
  check(pull_once(b, "layer-1", succeed, why) == Pulled::skipped, "the second one skips");

  // node-b waits while node-a works, and takes over when it fails.
  std::future<Pulled> other;
  const auto fail_when_awaited = [&](turnstile::Hold& hold) {
    other = std::async(std::launch::async, [&] {
      std::string ignored;
      return pull_once(b, "layer-2", succeed, ignored);
    });
    while (a.status("pull", "layer-2")->queue_length == 0) std::this_thread::yield();
    return fail(hold);
  };
  check(pull_once(a, "layer-2", fail_when_awaited, why) == Pulled::failed, "the first node fails");
  check(other.get() == Pulled::took_over, "the second one takes over");

  // A node that hangs loses the lock when its lease runs out.
  const auto hang = [&](turnstile::Hold&) {
    server.advance(std::chrono::minutes(1));
    return std::string();
  };
  check(pull_once(a, "layer-3", hang, why) == Pulled::failed, "whoever hangs is told that it lost the lock");
  return 0;
}
