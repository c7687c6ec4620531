// Leaders that take a request and do not answer it.
#include "server/forwarder.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <functional>
#include <future>
#include <latch>
#include <thread>
#include <vector>

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
    EXPECT_EQ(listen(fd_.get(), 1000), 0);
    EXPECT_EQ(getsockname(fd_.get(), any, &size), 0);
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  // Whether a byte of a request has come. By one thread.
  bool was_asked() {
    pollfd polled{asked_.get() >= 0 ? asked_.get() : fd_.get(), POLLIN, 0};
    if (poll(&polled, 1, 0) != 1) return false;
    if (asked_.get() < 0) asked_ = UniqueFd(accept(fd_.get(), nullptr, nullptr));
    return recv(asked_.get(), &polled, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }
  std::string url;

 protected:
  UniqueFd fd_;

 private:
  UniqueFd asked_;
};

// Answers once on each of many connections, and dies of the next request, before a word.
class DyingServer : public SilentServer {
 public:
  explicit DyingServer(unsigned connections) : thread_([this, connections] { run(connections); }) {}

 private:
  void run(unsigned connections) {
    std::vector<UniqueFd> all;
    while (all.size() < connections) all.emplace_back(accept(fd_.get(), nullptr, nullptr));
    std::vector<pollfd> polled;
    for (const UniqueFd& each : all) {
      read_request(each.get());
      polled.push_back({each.get(), POLLIN, 0});
    }
    constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    for (const UniqueFd& each : all)
      EXPECT_EQ(send(each.get(), kAnswer.data(), kAnswer.size(), 0), ssize_t(kAnswer.size()));
    EXPECT_GT(poll(polled.data(), polled.size(), -1), 0);
    for (const pollfd& each : polled)
      if (each.revents != 0) read_request(each.fd);
    fd_.reset();
  }
  static void read_request(int fd) {
    std::string request;
    char bytes[1000];
    while (!request.ends_with("\r\n\r\n{}")) {
      const ssize_t size = recv(fd, bytes, sizeof bytes, 0);
      ASSERT_GT(size, 0);
      request.append(bytes, size_t(size));
    }
  }
  std::jthread thread_;
};

std::shared_ptr<Forwarding> a_lock(std::function<void()> on_done) {
  const auto forwarding = std::make_shared<Forwarding>();
  forwarding->method = "POST";
  forwarding->target = "/lock";
  forwarding->body = "{}";
  forwarding->on_done = std::move(on_done);
  return forwarding;
}

std::string passed_on(const std::function<KnownLeader()>& leader) {
  Forwarder forwarder(leader, std::chrono::milliseconds(20), {});
  std::promise<void> done;
  const auto forwarding = a_lock([&] { done.set_value(); });
  EXPECT_TRUE(forwarder.take(forwarding));
  done.get_future().wait();
  return forwarding->answer;
}

TEST(Forwarder, S43_TellsThatTheOutcomeIsNotKnownWhenTheLeaderThatWasAskedLeadsNoLonger) {
  SilentServer another;
  for (const KnownLeader& then : {KnownLeader{another.url, 8},  // another one leads,
                                  KnownLeader{"", 8},           // this server does,
                                  KnownLeader{"", 7}}) {        // or nobody does, for longer than a lease
    SilentServer silent;
    const auto leader = [&] { return silent.was_asked() ? then : KnownLeader{silent.url, 7}; };
    EXPECT_NE(passed_on(leader).find("outcome_unknown"), std::string::npos) << then.url;
  }
  SilentServer again;  // it does again, and has forgotten
  const auto leader = [&] { return KnownLeader{again.url, again.was_asked() ? 8 : 7}; };
  EXPECT_NE(passed_on(leader).find("outcome_unknown"), std::string::npos);
}

TEST(Forwarder, S43_WhatWasSentOnAConnectionOfBeforeIsNotSentAgain) {
  const DyingServer dying(Forwarder::kThreads);
  Forwarder forwarder([&] { return KnownLeader{dying.url, 7}; }, std::chrono::hours(1), {});
  std::latch all(Forwarder::kThreads);
  for (unsigned i = 0; i < Forwarder::kThreads; ++i)
    ASSERT_TRUE(forwarder.take(a_lock([&] { all.count_down(); })));
  all.wait();
  std::promise<void> done;
  const auto last = a_lock([&] { done.set_value(); });
  while (!forwarder.take(last)) std::this_thread::yield();  // the one before is counted a moment longer
  done.get_future().wait();
  EXPECT_NE(last->answer.find("outcome_unknown"), std::string::npos) << last->answer;
}

TEST(Forwarder, S49_LongPollsLeaveRoomForCallsThatDoNotWait) {
  const SilentServer silent;
  Forwarder forwarder([&] { return KnownLeader{silent.url, 7}; }, std::chrono::hours(1), {});
  const auto call = [](bool waits) {
    auto made = a_lock([] {});
    made->waits = waits;
    return made;
  };
  for (unsigned i = 0; i < Forwarder::kMostWaiting; ++i) ASSERT_TRUE(forwarder.take(call(true)));
  EXPECT_FALSE(forwarder.take(call(true)));
  for (unsigned i = Forwarder::kMostWaiting; i < Forwarder::kThreads; ++i)
    ASSERT_TRUE(forwarder.take(call(false)));
  EXPECT_FALSE(forwarder.take(call(false)));
}

TEST(Forwarder, S49_TellsThatThereIsNoLeaderWhenNothingWasSent) {
  EXPECT_NE(passed_on([] { return KnownLeader{"", 7}; }).find("no_leader"), std::string::npos);
  EXPECT_NE(passed_on([] { return KnownLeader{"http://127.0.0.1:1", 7}; }).find("no_leader"),
            std::string::npos);
}

}  // namespace
}  // namespace turnstile
