#include "api/cursor.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

std::string cursor_of(std::string_view resource, std::string_view operation) {
  std::string out;
  append_cursor(out, {OperationName(operation), ResourceId(resource)});
  return out;
}

TEST(Cursor, EveryLaneComesBackFromItsCursor) {
  std::string scratch;
  for (const std::string& resource : {std::string("r"), std::string("ab"), std::string("abc"),
                                      std::string("a:b/c %&+=é😀"), std::string(1024, 'x')})
    for (const std::string operation : {"p", "pull", "a:b", "delete"}) {
      const std::string cursor = cursor_of(resource, operation);
      EXPECT_EQ(cursor.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                cursor.npos)
          << "it passes through a URL as it is";
      const auto lane = read_cursor(cursor, {}, scratch);
      ASSERT_TRUE(lane) << resource << operation;
      EXPECT_EQ(lane->resource.text, resource);
      EXPECT_EQ(lane->operation.text, operation);
    }
}

TEST(Cursor, LanesWithTheSameCharactersHaveDifferentCursors) {
  EXPECT_NE(cursor_of("a:b", "c"), cursor_of("a", "b:c"));
  EXPECT_NE(cursor_of("ab", "c"), cursor_of("a", "bc"));
}

TEST(Cursor, ATextThatNoCursorEverWasIsRefused) {
  std::string scratch;
  const std::string good = cursor_of("resource", "pull");
  for (const std::string& bad :
       {std::string("x"), std::string("!!!!"), good + "=", good + "A", good.substr(1), std::string("AAAA"),
        std::string("YWJj"), cursor_of("", "pull"), cursor_of("r", ""), cursor_of("a\nb", "pull"),
        cursor_of("r", "a\x7f"), cursor_of("\xff", "pull"), cursor_of(std::string(1025, 'x'), "pull"),
        cursor_of("r", std::string(65, 'x'))})
    EXPECT_FALSE(read_cursor(bad, {}, scratch)) << bad;
}

TEST(Cursor, LeftOverBitsMustBeZero) {
  std::string scratch;
  std::string cursor = cursor_of("a", "b");  // three bytes: no bits are left over
  ASSERT_EQ(cursor.size(), 4u);
  cursor = cursor_of("ab", "c");  // four bytes: the last digit has four spare bits
  ASSERT_TRUE(read_cursor(cursor, {}, scratch));
  cursor.back() = char(cursor.back() + 1);
  EXPECT_FALSE(read_cursor(cursor, {}, scratch));
}

}  // namespace
}  // namespace turnstile
