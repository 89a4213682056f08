#include "infer/server_chooser.h"

#include <gtest/gtest.h>

namespace weir::infer {
namespace {

using End = ServerChooser::End;
constexpr Instant kStart{10s};

TEST(ServerChooser, RoundRobinTakesEachInTurn) {
  ServerChooser chooser(Balance::kRoundRobin, 3);
  std::vector<size_t> chosen;
  for (int i = 0; i < 6; ++i) chosen.push_back(chooser.Choose(kStart));
  EXPECT_EQ(chosen, (std::vector<size_t>{0, 1, 2, 0, 1, 2}));
}

TEST(ServerChooser, LeastInFlightTakesTheOneWithTheFewestCalls) {
  ServerChooser chooser(Balance::kLeastInFlight, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(chooser.Choose(kStart), static_cast<size_t>(i));
  chooser.Ended(1, End::kAnswered, kStart);
  EXPECT_EQ(chooser.Choose(kStart), 1U);
  EXPECT_EQ(chooser.Choose(kStart), 2U);  // all are equal: the next in turn
}

TEST(ServerChooser, ACallThatFailedGoesToAnotherServer) {
  ServerChooser two(Balance::kRoundRobin, 2);
  EXPECT_EQ(two.Choose(kStart), 0U);
  EXPECT_EQ(two.Choose(kStart), 1U);
  EXPECT_EQ(two.Choose(kStart, 0), 1U);
  ServerChooser one(Balance::kRoundRobin, 1);
  EXPECT_EQ(one.Choose(kStart, 0), 0U);
}

TEST(ServerChooser, ALostServerRestsAndGetsOneCallOnTrial) {
  ServerChooser chooser(Balance::kRoundRobin, 2);
  EXPECT_EQ(chooser.Choose(kStart), 0U);
  chooser.Ended(0, End::kLost, kStart);
  EXPECT_FALSE(chooser.in_service(0, kStart));
  EXPECT_EQ(chooser.Choose(kStart), 1U);
  EXPECT_EQ(chooser.Choose(kStart), 1U);
  const Instant later = kStart + ServerChooser::kShortestRest;
  EXPECT_EQ(chooser.Choose(later), 0U);
  EXPECT_EQ(chooser.Choose(later), 1U);
  EXPECT_EQ(chooser.Choose(later), 1U);  // the call on trial has not ended
  chooser.Ended(0, End::kAnswered, later);
  EXPECT_EQ(chooser.Choose(later), 0U);
}

TEST(ServerChooser, ARestGrowsWithEachTrialThatIsLostButNotWithCallsLostTogether) {
  ServerChooser chooser(Balance::kRoundRobin, 2);
  for (int i = 0; i < 8; ++i) chooser.Choose(kStart);
  for (int i = 0; i < 4; ++i) chooser.Ended(0, End::kLost, kStart);
  Instant now = kStart;
  Duration rest = ServerChooser::kShortestRest;
  for (int trial = 0; trial < 10; ++trial) {
    EXPECT_FALSE(chooser.in_service(0, now + rest - 1ns));
    now += rest;
    EXPECT_TRUE(chooser.in_service(0, now));
    while (chooser.Choose(now) != 0) {
    }
    chooser.Ended(0, End::kLost, now);
    rest = std::min<Duration>(2 * rest, ServerChooser::kLongestRest);
  }
  EXPECT_EQ(rest, ServerChooser::kLongestRest);
}

TEST(ServerChooser, WithoutAnyServerInServiceAllAreTried) {
  ServerChooser chooser(Balance::kLeastInFlight, 2);
  for (size_t i = 0; i < 2; ++i) chooser.Ended(chooser.Choose(kStart), End::kLost, kStart);
  EXPECT_EQ(chooser.Choose(kStart), 0U);
  EXPECT_EQ(chooser.Choose(kStart), 1U);
}

TEST(ServerChooser, AnErrorThatTheServerAnsweredIsNoLoss) {
  ServerChooser chooser(Balance::kRoundRobin, 2);
  chooser.Ended(chooser.Choose(kStart), End::kFailed, kStart);
  EXPECT_TRUE(chooser.in_service(0, kStart));
  EXPECT_EQ(chooser.in_flight(0), 0);
}

}  // namespace
}  // namespace weir::infer
