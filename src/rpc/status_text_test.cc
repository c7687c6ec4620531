#include "rpc/status_text.h"

#include <gtest/gtest.h>

namespace turnstile::rpc {
namespace {

TEST(StatusText, EscapesWhatAHeaderCannotCarry) {
  EXPECT_EQ(status_text("no room"), "no room");
  EXPECT_EQ(status_text(" 100%\n"), "%20100%25%0A");
  EXPECT_EQ(status_text("ä"), "%C3%A4");
}

TEST(StatusText, ALongTextIsCutBetweenLetters) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "ä";
  const std::string shown = status_text(text);
  EXPECT_LE(shown.size(), 4096u);
  EXPECT_TRUE(shown.ends_with("%C3%A4...")) << shown.substr(shown.size() - 20);
}

TEST(StatusText, OfALongTextThatIsNoUtf8ThereIsStillTheBeginning) {
  const std::string shown = status_text(std::string(2000, '\x85'));
  EXPECT_LE(shown.size(), 4096u);
  EXPECT_GE(shown.size(), 4000u);
  EXPECT_TRUE(shown.starts_with("%85%85")) << shown.substr(0, 20);
}

}  // namespace
}  // namespace turnstile::rpc
