#include "http/look_predictor.h"

#include <gtest/gtest.h>

#include <functional>

namespace turnstile::http {
namespace {

using std::chrono::microseconds;
using From = LookPredictor::From;

struct Wait {
  int length;  // microseconds until the work is there
  From from = From::peers;
};

struct Looked {
  int times = 0, found = 0;
  microseconds spent{0};
};

// Lets a loop wait `count` times, each as `next(i)` says; returns what it did about it.
Looked run(LookPredictor& predictor, int count, const std::function<Wait(int)>& next) {
  Looked looked;
  for (int i = 0; i < count; ++i) {
    const Wait wait = next(i);
    const microseconds length(wait.length);
    if (!predictor.pays(wait.from)) {
      predictor.learn(wait.from, length + LookPredictor::kWaking, false);
      continue;
    }
    ++looked.times;
    const bool found = length < LookPredictor::kLongestLook;
    looked.found += found;
    looked.spent += std::min<microseconds>(length, LookPredictor::kLongestLook);
    predictor.learn(wait.from, length, found);
  }
  return looked;
}

TEST(LookPredictor, LooksForNothingAtFirst) {
  EXPECT_FALSE(LookPredictor().pays(From::peers));
  EXPECT_FALSE(LookPredictor().pays(From::disk));
}

TEST(LookPredictor, LooksSoonWhenEveryWaitIsShort) {
  LookPredictor predictor;
  run(predictor, 20, [](int) { return Wait{140}; });  // as long as both sides sleep
  EXPECT_EQ(run(predictor, 100, [](int) { return Wait{30}; }).times, 100);
}

TEST(LookPredictor, NeverLooksForARequestNowAndThen) {
  LookPredictor predictor;
  EXPECT_EQ(run(predictor, 1000, [](int) { return Wait{10'000}; }).times, 0);
}

TEST(LookPredictor, NeverLooksForThePacketsOfARequestNowAndThenNorForItsSync) {
  LookPredictor predictor;
  const auto request = [](int i) {
    return i % 3 == 0 ? Wait{10'000} : i % 3 == 1 ? Wait{30} : Wait{80, From::disk};
  };
  run(predictor, 30, request);
  EXPECT_EQ(run(predictor, 1000, request).times, 0);
}

TEST(LookPredictor, StopsAtOnceWhenThereIsAPause) {
  LookPredictor predictor;
  run(predictor, 1000, [](int) { return Wait{30}; });
  EXPECT_EQ(run(predictor, 1000, [](int) { return Wait{10'000}; }).times, 1);
}

TEST(LookPredictor, LooksAgainAFewWaitsAfterADisturbance) {
  LookPredictor predictor;
  const auto disturbed = [](int i) { return Wait{i % 50 == 0 ? 5'000 : 30}; };
  run(predictor, 1000, disturbed);
  EXPECT_GE(run(predictor, 1000, disturbed).found, 940) << "of 980";
}

TEST(LookPredictor, LooksThroughASyncThatIsNotLongerThanALook) {
  LookPredictor predictor;
  const auto handed_over = [](int i) { return i % 2 == 0 ? Wait{200, From::disk} : Wait{30}; };
  run(predictor, 100, handed_over);
  EXPECT_EQ(run(predictor, 1000, handed_over).found, 1000);
}

TEST(LookPredictor, DoesNotLookThroughALongerOneButForTheClientBehindIt) {
  for (const int sync : {310, 400, 900}) {
    LookPredictor predictor;
    const auto handed_over = [&](int i) { return i % 2 == 0 ? Wait{sync, From::disk} : Wait{40}; };
    run(predictor, 100, handed_over);
    const Looked looked = run(predictor, 1000, handed_over);
    EXPECT_EQ(looked.found, 500) << sync;
    EXPECT_EQ(looked.spent, microseconds(500 * 40)) << sync;
  }
}

TEST(LookPredictor, SpendsLittleOnWaitsWithoutAPattern) {
  LookPredictor predictor;
  unsigned state = 1;
  const auto chance = [&](int) {  // one of four is short
    state = state * 1664525 + 1013904223;
    return Wait{state >> 30 == 0 ? 50 : 700};
  };
  EXPECT_LE(run(predictor, 2000, chance).times, 60);
}

}  // namespace
}  // namespace turnstile::http
