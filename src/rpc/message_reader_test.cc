// Framing, piece by piece.
#include "rpc/message_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "rpc/test_client.h"

namespace turnstile::rpc {
namespace {

using Texts = std::vector<std::string>;

Texts read_in_pieces(MessageReader& reader, std::string_view bytes, size_t piece) {
  Texts messages;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    std::string_view now = bytes.substr(0, piece);
    while (auto message = reader.next(now)) messages.push_back(std::move(*message));
    EXPECT_TRUE(now.empty() || reader.error());
  }
  return messages;
}

TEST(MessageReader, CutsMessagesOutOfPiecesOfEverySize) {
  const Texts messages{"first", "", std::string(300, 'x'), "", "", "last"};
  std::string bytes;
  for (const std::string& message : messages) bytes += framed(message);
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    MessageReader reader(300);
    EXPECT_EQ(read_in_pieces(reader, bytes, piece), messages) << piece;
    EXPECT_FALSE(reader.in_the_middle());
    EXPECT_FALSE(reader.error());
  }
}

TEST(MessageReader, KnowsThatItIsInTheMiddleOfAMessage) {
  const std::string bytes = framed("four");
  for (size_t size = 0; size <= bytes.size(); ++size) {
    MessageReader reader(100);
    read_in_pieces(reader, std::string_view(bytes).substr(0, size), 100);
    EXPECT_EQ(reader.in_the_middle(), size > 0 && size < bytes.size()) << size;
  }
}

TEST(MessageReader, RefusesAMessageThatIsTooLargeByItsLengthAlone) {
  MessageReader reader(100);
  const auto prefix = prefix_of(101);
  EXPECT_EQ(read_in_pieces(reader, framed("good") + std::string(prefix.data(), prefix.size()), 3),
            Texts{"good"});
  ASSERT_TRUE(reader.error());
  EXPECT_EQ(reader.error()->code, Code::resource_exhausted);
  std::string_view more = "what comes after it is nothing";
  EXPECT_FALSE(reader.next(more));
}

TEST(MessageReader, TakesTheLargestLengthForWhatItIs) {
  MessageReader reader(SIZE_MAX >> 33);
  std::string_view bytes("\0\xff\xff\xff\xff", 5);
  EXPECT_FALSE(reader.next(bytes));
  ASSERT_TRUE(reader.error());
  EXPECT_NE(reader.error()->message.find("4294967295"), std::string::npos);
}

TEST(MessageReader, RefusesACompressedMessage) {
  MessageReader reader(100);
  std::string_view bytes("\1\0\0\0\1x", 6);
  EXPECT_FALSE(reader.next(bytes));
  ASSERT_TRUE(reader.error());
  EXPECT_EQ(reader.error()->code, Code::unimplemented);
}

TEST(MessageReader, MemoryOfAnEarlierMessageIsUsedAgain) {
  MessageReader reader(1000);
  std::string memory(1000, 'm');
  const char* place = memory.data();
  reader.recycle(std::move(memory));
  const std::string framed_message = framed(std::string(500, 'x'));
  std::string_view bytes = framed_message;
  const std::optional<std::string> message = reader.next(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(*message, std::string(500, 'x'));
  EXPECT_EQ(message->data(), place);
}

}  // namespace
}  // namespace turnstile::rpc
