// A leader that takes a request and never answers it.
#include "server/forwarder.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>

#include "base/unique_fd.h"

namespace turnstile {
namespace {

// Takes connections, as the kernel does for every program that listens, and says nothing.
class SilentServer {
 public:
  SilentServer() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_.get(), any, size), 0);
    EXPECT_EQ(listen(fd_.get(), 8), 0);
    EXPECT_EQ(getsockname(fd_.get(), any, &size), 0);
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  std::string url;

 private:
  UniqueFd fd_;
};

// What is answered when the leader is `first` when it is asked, and `then` from then on.
std::string passed_on(const KnownLeader& first, const KnownLeader& then) {
  std::atomic<int> looks{0};
  Forwarder forwarder([&] { return looks++ == 0 ? first : then; }, std::chrono::milliseconds(20), {});
  const auto forwarding = std::make_shared<Forwarding>();
  std::promise<void> done;
  forwarding->method = "POST";
  forwarding->target = "/lock";
  forwarding->body = "{}";
  forwarding->on_done = [&] { done.set_value(); };
  EXPECT_TRUE(forwarder.take(forwarding));
  done.get_future().wait();
  return forwarding->answer;
}

TEST(Forwarder, S43_TellsThatTheOutcomeIsNotKnownWhenTheLeaderThatWasAskedLeadsNoLonger) {
  const SilentServer silent;
  for (const KnownLeader& then : {KnownLeader{"http://another", 8},  // another one leads,
                                  KnownLeader{"", 8},                // this server does,
                                  KnownLeader{silent.url, 8},        // it does again, and has forgotten,
                                  KnownLeader{"", 7}})  // or nobody does, for longer than a lease
    EXPECT_NE(passed_on({silent.url, 7}, then).find("outcome_unknown"), std::string::npos) << then.url;
}

TEST(Forwarder, S49_TellsThatThereIsNoLeaderWhenNothingWasSent) {
  EXPECT_NE(passed_on({"", 7}, {"", 7}).find("no_leader"), std::string::npos);
}

}  // namespace
}  // namespace turnstile
