// What leaves through a socket that takes little at a time.
#include "rpc/outgoing.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <random>

#include "base/unique_fd.h"

namespace turnstile::rpc {
namespace {

class OutgoingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    near_ = UniqueFd(ends[0]);
    far_ = UniqueFd(ends[1]);
    const int small = 4096;
    ASSERT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  }
  void copied(const std::string& bytes) {
    outgoing_.add(bytes);
    expected_ += bytes;
  }
  void referenced(const std::string& bytes) {
    const std::shared_ptr<char[]> place(new char[bytes.size()]);
    bytes.copy(place.get(), bytes.size());
    outgoing_.add(place, {place.get(), bytes.size()});
    places_.push_back(place);
    expected_ += bytes;
  }
  void take_what_came() {
    std::array<char, 3000> buffer;
    for (ssize_t got; (got = ::recv(far_.get(), buffer.data(), buffer.size(), 0)) > 0;)
      received_.append(buffer.data(), size_t(got));
  }

  Outgoing outgoing_;
  UniqueFd near_, far_;
  std::vector<std::weak_ptr<char[]>> places_;
  std::string expected_, received_;
};

TEST_F(OutgoingTest, CopiedAndReferencedBytesArriveInOrderThroughASmallSocket) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 400; ++i) {  // more pieces than one call of the kernel's takes
      const std::string bytes(random() % 200, char('a' + random() % 26));
      random() % 2 ? copied(bytes) : referenced(bytes);
    }
    EXPECT_EQ(outgoing_.size(), expected_.size() - received_.size());
    int partly = 0;
    while (outgoing_.send_to(near_.get()) == Outgoing::Sent::some) {
      ++partly;
      take_what_came();
      EXPECT_EQ(outgoing_.size(), expected_.size() - received_.size());
    }
    take_what_came();
    EXPECT_GT(partly, 1);
    EXPECT_TRUE(outgoing_.empty());
    ASSERT_EQ(received_, expected_) << round;
  }
}

TEST_F(OutgoingTest, ReferencedMemoryIsGivenBackOnceItIsSent) {
  referenced("first");
  copied("between");
  referenced(std::string(1 << 20, 'x'));
  EXPECT_EQ(outgoing_.send_to(near_.get()), Outgoing::Sent::some);
  EXPECT_TRUE(places_[0].expired());
  EXPECT_FALSE(places_[1].expired());
  while (outgoing_.send_to(near_.get()) == Outgoing::Sent::some) take_what_came();
  EXPECT_TRUE(places_[1].expired());
}

TEST_F(OutgoingTest, NothingToSendIsAllSent) {
  EXPECT_EQ(outgoing_.send_to(near_.get()), Outgoing::Sent::all);
  copied("");
  referenced("");
  EXPECT_EQ(outgoing_.send_to(near_.get()), Outgoing::Sent::all);
}

TEST_F(OutgoingTest, AClosedPeerIsAnErrorAndNoSignal) {
  copied("x");
  far_.reset();
  EXPECT_EQ(outgoing_.send_to(near_.get()), Outgoing::Sent::broken);
}

}  // namespace
}  // namespace turnstile::rpc
