#include "base/shared_text.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace turnstile {
namespace {

TEST(SharedText, HoldsWhatItWasGivenAndCopiesShareIt) {
  const std::string words(5000, 'w');
  const SharedText first(words);
  const SharedText second = first;
  EXPECT_EQ(second.view(), words);
  EXPECT_EQ(second.view().data(), first.view().data());
  EXPECT_TRUE(second.same_as(first));
  EXPECT_FALSE(SharedText(words).same_as(first)) << "equal, but not the same";
  EXPECT_EQ(sizeof first, 8u);
}

TEST(SharedText, LivesAsLongAsItsLastOwner) {
  SharedText kept;
  {
    SharedText made("some text that is longer than any buffer inside of it");
    kept = made;
    SharedText moved = std::move(made);
    EXPECT_EQ(moved.view(), kept.view());
    kept = std::as_const(kept);  // itself
  }
  EXPECT_EQ(kept.view(), "some text that is longer than any buffer inside of it");
  kept = SharedText();
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(kept.view(), "");
  EXPECT_TRUE(SharedText("").empty());
}

TEST(SharedText, OwnersMayLiveInManyThreads) {
  const SharedText text("shared");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([text] {
      for (int j = 0; j < 10'000; ++j) {
        const SharedText copy = text;
        EXPECT_EQ(copy.view(), "shared");
      }
    });
}

}  // namespace
}  // namespace turnstile
