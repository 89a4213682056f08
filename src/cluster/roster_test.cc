#include "cluster/roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cluster {
namespace {

using testing::ElementsAre;

TEST(Roster, GivesTheRankAHostWantsElseTheLowestThatIsFree) {
  const ManualClock clock;
  Roster roster(3);
  EXPECT_EQ(roster.Join("b", 1, 3, clock.Now()), 1);
  EXPECT_EQ(roster.Join("x", std::nullopt, 0, clock.Now()), 0);
  EXPECT_THAT(roster.Missing(), ElementsAre(2));
  EXPECT_EQ(roster.Join("y", std::nullopt, 0, clock.Now()), 2);
  EXPECT_TRUE(roster.complete());
  EXPECT_FALSE(roster.Join("z", std::nullopt, 0, clock.Now()));
}

TEST(Roster, RefusesARankTwiceAndAnotherNumberOfHosts) {
  const ManualClock clock;
  Roster roster(2);
  ASSERT_TRUE(roster.Join("a", 0, 2, clock.Now()));
  const auto twice = roster.Join("b", 0, 2, clock.Now());
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("which a has"), std::string::npos);
  EXPECT_FALSE(roster.Join("c", 2, 0, clock.Now()));
  EXPECT_FALSE(roster.Join("d", 1, 4, clock.Now()));
}

TEST(Roster, LosesAHostThatIsSilentAndNamesIt) {
  ManualClock clock;
  Roster roster(2);
  ASSERT_TRUE(roster.Join("a", 0, 0, clock.Now()));
  ASSERT_TRUE(roster.Join("b", 1, 0, clock.Now()));
  clock.Advance(3s);
  roster.Heard(0, clock.Now());
  EXPECT_THAT(roster.LoseSilent(clock.Now()), ElementsAre());
  clock.Advance(1500ms);
  EXPECT_THAT(roster.LoseSilent(clock.Now()), ElementsAre(1));
  EXPECT_EQ(roster.LostText(), "b (rank 1): no sign of it for 4.5 s");
  EXPECT_THAT(roster.LoseSilent(clock.Now()), ElementsAre());
  roster.Lose(1, "closed the connection");
  EXPECT_EQ(roster.LostText(), "b (rank 1): no sign of it for 4.5 s");
  // Another may take its place.
  EXPECT_THAT(roster.Missing(), ElementsAre(1));
  EXPECT_FALSE(roster.Join("c", 1, 0, clock.Now()));
  roster.Free(1);
  EXPECT_EQ(roster.Join("c", 1, 0, clock.Now()), 1);
  EXPECT_EQ(roster.LostText(), "");
  EXPECT_TRUE(roster.complete());
}

TEST(Roster, NamesASilentHostWithinFiveSecondsOfItsLastBeat) { EXPECT_LE(kPatience + kHeartbeat, 5s); }

TEST(StepBarrier, ReleasesWhenTheLastHasArrivedAndSaysHowLongEachWaited) {
  ManualClock clock;
  StepBarrier barrier(2);
  for (int64_t step = 0; step < 3; ++step) {
    const int first = static_cast<int>(step % 2), second = 1 - first;
    EXPECT_TRUE(barrier.Arrive(first, step, false, clock.Now())->empty());
    clock.Advance(5ms);
    const auto releases = *barrier.Arrive(second, step, step == 2, clock.Now());
    ASSERT_EQ(releases.size(), 1);
    EXPECT_EQ(releases[0].step, step);
    EXPECT_EQ(releases[0].last, step == 2);
    EXPECT_EQ(releases[0].waited[static_cast<size_t>(first)], 5ms);
    EXPECT_EQ(releases[0].waited[static_cast<size_t>(second)], Duration{});
  }
}

TEST(StepBarrier, LetsARankBeStepsAhead) {
  const ManualClock clock;
  StepBarrier barrier(2);
  for (int64_t step = 0; step < 3; ++step) EXPECT_TRUE(barrier.Arrive(0, step, false, clock.Now())->empty());
  for (int64_t step = 0; step < 3; ++step) EXPECT_EQ(barrier.Arrive(1, step, false, clock.Now())->size(), 1);
}

TEST(StepBarrier, RefusesAStepThatIsNotTheNext) {
  const ManualClock clock;
  StepBarrier barrier(2);
  ASSERT_TRUE(barrier.Arrive(0, 0, false, clock.Now()));
  EXPECT_FALSE(barrier.Arrive(0, 0, false, clock.Now()));
  EXPECT_FALSE(barrier.Arrive(1, 1, false, clock.Now()));
  barrier.Restart();
  EXPECT_TRUE(barrier.Arrive(0, 0, false, clock.Now()));
}

}  // namespace
}  // namespace weir::cluster
