#include "base/text.h"

#include <gtest/gtest.h>

#include <string>

namespace turnstile {
namespace {

TEST(Text, KeepsEveryLengthAroundItsTwoForms) {
  for (size_t size : {0, 1, 71, 254, 255, 256, 70000}) {
    const std::string from(size, 'x');
    EXPECT_EQ(Text(from).view(), from) << size;
  }
}

TEST(Text, KeepsNulBytes) {
  EXPECT_EQ(Text(std::string_view("a\0b", 3)).view(), std::string_view("a\0b", 3));
}

TEST(Text, TakesEightBytes) { EXPECT_EQ(sizeof(Text), 8u); }

}  // namespace
}  // namespace turnstile
