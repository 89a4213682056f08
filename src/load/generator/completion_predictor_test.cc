#include "load/generator/completion_predictor.h"

#include <gtest/gtest.h>

namespace weir::load {
namespace {

using namespace std::chrono_literals;

const Instant kStart = Instant{} + 1s;

// One at a time, each as long as `took` says for its number, the next sent at once; one is still out.
template <typename Took>
CompletionPredictor After(int answers, Took took, Instant& now) {
  CompletionPredictor expectation;
  for (int i = 0; i < answers; ++i) {
    const Instant sent = now;
    expectation.Sent(sent);
    now += took(i);
    expectation.Ended(sent, now, true);
  }
  expectation.Sent(now);
  return expectation;
}

TEST(CompletionPredictor, IsTheUsualTimeAfterTheRequestLeft) {
  Instant now = kStart;
  const CompletionPredictor expectation = After(20, [](int i) { return i == 17 ? 50ms : 5ms; }, now);
  EXPECT_EQ(expectation.Next(now), now + 5ms);
  EXPECT_EQ(expectation.Next(now + 5ms + 149us), now + 5ms);
  EXPECT_EQ(expectation.Next(now + 5ms + 150us), std::nullopt);  // it did not come
}

TEST(CompletionPredictor, NeedsSomeAnswersFirstAndGoesWithThem) {
  Instant now = kStart;
  EXPECT_EQ(After(15, [](int) { return 5ms; }, now).Next(now), std::nullopt);
  const CompletionPredictor slower = After(40, [](int i) { return i < 20 ? 5ms : 10ms; }, now);
  EXPECT_EQ(slower.Next(now), now + 10ms);
}

TEST(CompletionPredictor, IsNoneWhereTimesDiffer) {
  Instant now = kStart;
  EXPECT_EQ(After(40, [](int i) { return 5ms + (i % 2) * 200us; }, now).Next(now), std::nullopt);
}

TEST(CompletionPredictor, IsNoneWhereItWouldTakeMuchOfTheTime) {
  Instant now = kStart;
  const auto steady = [&](Duration took) { return After(40, [&](int) { return took; }, now); };
  EXPECT_EQ(steady(3100us).Next(now), std::nullopt);
  CompletionPredictor expectation = steady(4ms);
  EXPECT_EQ(expectation.Next(now), now + 4ms);
  expectation.Sent(now + 1ms);
  EXPECT_EQ(expectation.Next(now), std::nullopt);  // twice as often
}

TEST(CompletionPredictor, IsNoneWhereBeingAwakeTakesMoreThanItShould) {
  Instant now = kStart;
  CompletionPredictor expectation = After(40, [](int) { return 5ms; }, now);
  for (int i = 0; i < 16; ++i) expectation.Waited(0us);  // what came while it was busy says nothing
  EXPECT_EQ(expectation.Next(now), now + 5ms);
  expectation.Sent(now + 1ms);
  EXPECT_EQ(expectation.Next(now), std::nullopt);
  expectation.Ended(now, now + 5ms, true);
  EXPECT_EQ(expectation.Next(now), now + 6ms);
  for (int i = 0; i < 16; ++i) expectation.Waited(1500us);  // it cannot sleep finely
  EXPECT_EQ(expectation.Next(now), std::nullopt);
}

TEST(CompletionPredictor, OfSeveralTheFirstIsNext) {
  Instant now = kStart;
  CompletionPredictor expectation = After(40, [](int) { return 20ms; }, now);
  const Instant first = now;
  expectation.Sent(first + 7ms);
  EXPECT_EQ(expectation.Next(first), first + 20ms);
  expectation.Ended(first, first + 20ms, true);
  EXPECT_EQ(expectation.Next(first + 20ms), first + 27ms);
}

TEST(CompletionPredictor, AFailureTellsNothingOfTheTime) {
  Instant now = kStart;
  CompletionPredictor expectation = After(40, [](int) { return 5ms; }, now);
  expectation.Ended(now, now + 1us, false);
  EXPECT_EQ(expectation.Next(now), std::nullopt);  // nothing is out
  expectation.Sent(now);
  EXPECT_EQ(expectation.Next(now), now + 5ms);
}

}  // namespace
}  // namespace weir::load
