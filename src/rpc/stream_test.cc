// One call between its two sides, without a connection.
#include "rpc/stream.h"

#include <sys/socket.h>

#include <array>
#include <thread>

#include "rpc/test_server.h"

namespace turnstile::rpc {
namespace {

using namespace std::chrono_literals;

class StreamTest : public testing::Test {
 protected:
  size_t take(std::string_view bytes) {
    size_t granted = 0;
    EXPECT_FALSE(stream_.take(bytes, granted));
    return granted;
  }
  // What leaves when the loop takes all in pieces of this size.
  std::string sent(size_t piece) {
    Outgoing outgoing;
    while (const size_t bytes = stream_.sendable().bytes) stream_.send(std::min(bytes, piece), outgoing);
    std::array<int, 2> ends;
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const UniqueFd near(ends[0]), far(ends[1]);
    std::string all(outgoing.size(), '\0');
    EXPECT_EQ(outgoing.send_to(near.get()), Outgoing::Sent::all);
    EXPECT_EQ(::recv(far.get(), all.data(), all.size(), MSG_WAITALL), ssize_t(all.size()));
    return all;
  }

  int looks_ = 0;  // that the loop was asked for
  Stream stream_{1, 1000, [this] { ++looks_; }};
};

TEST_F(StreamTest, NothingIsGrantedWhileAMessageWaitsForItsMethod) {
  const std::string message = framed("first");
  EXPECT_EQ(take(message.substr(0, 7)), 7u);
  EXPECT_EQ(take(message.substr(7)), 3u);
  EXPECT_EQ(take(framed("second")), 0u);
  EXPECT_EQ(stream_.take_grant(), 0u);
  std::string read;
  EXPECT_TRUE(stream_.read(read));
  EXPECT_EQ(looks_, 0);  // one still waits
  EXPECT_TRUE(stream_.read(read));
  EXPECT_EQ(read, "second");
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(stream_.take_grant(), framed("second").size());
  EXPECT_EQ(stream_.take_grant(), 0u);
}

TEST_F(StreamTest, TheEndOfARequestComesBehindItsMessages) {
  take(framed("") + framed("x"));
  stream_.end_of_request();
  std::string read = "before";
  EXPECT_TRUE(stream_.read(read));
  EXPECT_EQ(read, "");
  EXPECT_TRUE(stream_.read(read));
  EXPECT_EQ(read, "x");
  EXPECT_FALSE(stream_.read(read));
}

TEST_F(StreamTest, WhoWaitsToReadIsToldThatNothingHasCome) {
  std::string read;
  EXPECT_FALSE(stream_.wait_to_read(1ms));
  take(framed("x"));
  EXPECT_TRUE(stream_.wait_to_read(1h));
  EXPECT_TRUE(stream_.read(read));
  EXPECT_FALSE(stream_.wait_to_read(1ms));
  stream_.end_of_request();
  EXPECT_TRUE(stream_.wait_to_read(1h)) << "nothing will come";
}

TEST_F(StreamTest, TheLoopIsAskedOnceForManyMessagesAndAgainWhenItHasSentThem) {
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(stream_.write(message_of(std::to_string(i))));
    expected += framed(std::to_string(i));
  }
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(sent(7), expected);
  EXPECT_TRUE(stream_.write(message_of("later")));
  EXPECT_EQ(looks_, 2);
  stream_.finish({});
  EXPECT_EQ(looks_, 3);
  EXPECT_TRUE(stream_.sendable().finished);
}

TEST_F(StreamTest, MessagesKeepTheirOrderWhereverTheirBytesLie) {
  std::string expected;
  for (const size_t size : {0, 10, 20'000, 0, 0, 3}) {
    EXPECT_TRUE(stream_.write(message_of(std::string(size, 'c'))));
    EXPECT_TRUE(stream_.write(large_message(size)));
    expected += framed(std::string(size, 'c'));
    expected += framed(std::to_string(size) + ":" + std::string(size, 'x'));
  }
  EXPECT_EQ(sent(777), expected);
}

TEST_F(StreamTest, ACancelledCallNeitherReadsNorWrites) {
  take(framed("x"));
  std::thread waiting([this] {
    std::string read;
    while (stream_.read(read)) continue;
  });
  stream_.cancel();
  waiting.join();
  EXPECT_FALSE(stream_.write(message_of("x")));
}

}  // namespace
}  // namespace turnstile::rpc
