#include "results/bottleneck.h"

#include <gtest/gtest.h>

namespace weir::results {
namespace {

// 1,000 pictures on two cores, 1 ms to load and an accelerator at 1,000 images/s with two in flight.
Costs Balanced() {
  return {.images = 1000,
          .wall_s = 1.0,
          .cores = 2,
          .loaders = 2,
          .load_cpu_s = 1.0,
          .engine_threads = 0,
          .engine_streams = 1,
          .engine_busy_s = 1.0,
          .in_flight = 2,
          .round_trip_s = 1.1,
          .print_s = 0.01};
}

TEST(FindBounds, EachPartAloneAndTheLeastOfThem) {
  const Bounds bounds = FindBounds(Balanced());
  EXPECT_DOUBLE_EQ(*bounds.decode, 2000);
  EXPECT_DOUBLE_EQ(*bounds.infer, 1000);
  EXPECT_DOUBLE_EQ(bounds.pipeline, 1000);
  EXPECT_FALSE(bounds.read);
}

TEST(FindBounds, TwoCoresSharedByDecodingAndInferenceGiveTwoOverTheirSum) {
  Costs costs = Balanced();
  costs.engine_threads = 2;
  costs.engine_streams = 2;
  costs.engine_cpu_s = 3;
  EXPECT_DOUBLE_EQ(FindBounds(costs).pipeline, 1000 * 2 / 4.0);
}

TEST(FindBottleneck, ABusyAcceleratorIsTheBottleneck) {
  const auto bottleneck = FindBottleneck(Balanced());
  EXPECT_EQ(bottleneck->stage, "infer");
  EXPECT_NEAR(bottleneck->share, 1, 1e-9);
  EXPECT_NEAR(bottleneck->gain, 2, 1e-9);
}

TEST(FindBottleneck, OneDecodeThreadIsTheBottleneckUnderAFastEngine) {
  Costs costs = Balanced();
  costs.loaders = 1;
  costs.engine_busy_s = 0.1;
  costs.round_trip_s = 0.2;
  const auto bottleneck = FindBottleneck(costs);
  EXPECT_EQ(bottleneck->stage, "decode");
  EXPECT_NEAR(bottleneck->gain, 2, 1e-9);
}

TEST(FindBottleneck, LoadersThatWaitForStorageNameReading) {
  Costs costs = Balanced();
  costs.wall_s = 3;
  costs.load_blocked_s = 5;
  costs.engine_busy_s = 0.1;
  costs.round_trip_s = 0.2;
  EXPECT_EQ(FindBottleneck(costs)->stage, "read");
}

TEST(FindBottleneck, DepthIsTheBottleneckWhereFullBatchesWaitAndTheEngineHasRoom) {
  Costs costs = Balanced();
  costs.engine_streams = 4;
  costs.in_flight = 1;
  costs.wall_s = 1.1;
  costs.held_back_s = 1.0;
  const auto bottleneck = FindBottleneck(costs);
  EXPECT_EQ(bottleneck->stage, "in_flight");
  EXPECT_GT(bottleneck->gain, 1.5);
}

TEST(FindBottleneck, AnAcceleratorsDepthIsNamedOnABusyMachineToo) {
  Costs costs = Balanced();
  costs.engine_streams = 8;
  costs.in_flight = 1;
  costs.wall_s = 1.1;
  costs.held_back_s = 1.0;
  costs.foreign_cpu_s = 2;
  EXPECT_EQ(FindBottleneck(costs)->stage, "in_flight");
}

TEST(FindBottleneck, DepthIsNotBlamedForCoresThatOthersHold) {
  Costs costs = Balanced();
  costs.engine_threads = 2;
  costs.engine_streams = 2;
  costs.engine_cpu_s = 3;
  costs.wall_s = 10;
  costs.held_back_s = 8;
  costs.foreign_cpu_s = 15;
  EXPECT_EQ(FindBottleneck(costs)->stage, "infer");
}

TEST(FindBottleneck, FullCoresNameTheStageThatTakesMostOfThem) {
  Costs costs = Balanced();
  costs.engine_threads = 2;
  costs.engine_streams = 2;
  costs.engine_cpu_s = 3;
  costs.wall_s = 2;
  costs.engine_busy_s = 3.9;
  EXPECT_EQ(FindBottleneck(costs)->stage, "infer");
  EXPECT_NEAR(FindBottleneck(costs)->share, 0.75, 1e-9);
  costs.load_cpu_s = 6;
  costs.wall_s = 4.5;
  EXPECT_EQ(FindBottleneck(costs)->stage, "decode");
}

TEST(FindBottleneck, WithoutOverlapTheLongestStageIsTheBottleneck) {
  Costs costs = Balanced();
  costs.overlapped = false;
  costs.loaders = 1;
  costs.load_s = 1;
  costs.infer_s = 3;
  const auto bottleneck = FindBottleneck(costs);
  EXPECT_EQ(bottleneck->stage, "infer");
  EXPECT_NEAR(bottleneck->share, 3 / 4.01, 1e-6);
  EXPECT_NEAR(FindBounds(costs).pipeline, 1000 / 4.01, 1e-6);
}

TEST(FindBottleneck, NothingDoneHasNoBottleneck) { EXPECT_FALSE(FindBottleneck(Costs{})); }

// 1,000 pictures, 2 ms to load on two cores, a server that keeps 4 batches on their way all the time.
Costs AtAServer() {
  return {.images = 1000,
          .wall_s = 2.0,
          .cores = 2,
          .loaders = 2,
          .load_cpu_s = 1.0,
          .remote = true,
          .in_flight = 4,
          .round_trip_s = 7.9,
          .held_back_s = 1.8,
          .print_s = 0.01,
          .other_cpu_s = 0.2};
}

TEST(FindBounds, AServerIsBoundByItsRoundTripsAndNoClaimIsMadeOfItsEngine) {
  const Bounds bounds = FindBounds(AtAServer());
  EXPECT_DOUBLE_EQ(*bounds.server, 1000 / (7.9 / 4));
  EXPECT_FALSE(bounds.infer);
  EXPECT_FALSE(bounds.in_flight);
  EXPECT_DOUBLE_EQ(bounds.pipeline, *bounds.server);
}

TEST(FindBottleneck, AServerIsTheBottleneckWhereAllInFlightAreWithIt) {
  Costs costs = AtAServer();
  const auto bottleneck = FindBottleneck(costs);
  EXPECT_EQ(bottleneck->stage, "server");
  EXPECT_NEAR(bottleneck->share, 7.9 / 8, 1e-9);
  EXPECT_GT(bottleneck->gain, 1.5);
  EXPECT_EQ(bottleneck->text.find("other processes"), std::string::npos);
  costs.foreign_cpu_s = 2.0;
  EXPECT_NE(FindBottleneck(costs)->text.find("other processes"), std::string::npos);
}

TEST(FindBottleneck, OurOwnPartsAreNamedWhereTheServerWaitsForThem) {
  Costs costs = AtAServer();
  costs.held_back_s = 0;
  costs.round_trip_s = 2;
  costs.load_cpu_s = 3.7;
  EXPECT_EQ(FindBottleneck(costs)->stage, "decode");
  costs.load_cpu_s = 0.2;
  costs.loaders = 0;
  costs.other_cpu_s = 3.7;
  EXPECT_EQ(FindBottleneck(costs)->stage, "client");
}

TEST(FindBottleneck, WithoutOverlapTheWaitForTheServerIsAStage) {
  Costs costs = AtAServer();
  costs.overlapped = false;
  costs.in_flight = 1;
  costs.load_s = 1;
  costs.send_s = 2;
  const auto bottleneck = FindBottleneck(costs);
  EXPECT_EQ(bottleneck->stage, "server");
  EXPECT_NEAR(bottleneck->share, 2 / 3.01, 1e-9);
}

TEST(FindBottleneck, IsTheDepthWhereNothingIsBusy) {
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.1, .recogniser = 0.4, .cores = 0.3}).stage, "in_flight");
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.95, .recogniser = 0.9, .cores = 0.3}).stage, "network");
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.5, .recogniser = 0.9, .cores = 0.3}).stage, "infer");
}

TEST(FindBottleneck, IsTheCoresWhereNoneIsLeft) {
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.6, .recogniser = 0.4, .cores = 0.95}).stage, "cpu");
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.6, .recogniser = 0.4, .cores = 0.95}).share, 0.95);
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.85, .recogniser = 0.4, .cores = 1}).stage, "network");
}

TEST(FindBottleneck, IsTheLinkThatSeveralRequestsDidNotQuiteFill) {
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.7, .recogniser = 0.1, .cores = 0.3, .overlapped = true}).stage,
            "network");
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.7, .recogniser = 0.1, .cores = 0.3}).stage, "in_flight");
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.7, .recogniser = 0.75, .cores = 0.3, .overlapped = true}).stage,
            "in_flight");
  EXPECT_EQ(FindBottleneck(Busy{.link = 0.4, .recogniser = 0.1, .cores = 0.3, .overlapped = true}).stage,
            "in_flight");
}

TEST(FindBottleneck, IsTheStageWhoseThreadsAreBusiest) {
  const StageTime stages[] = {{"read", 3, 4}, {"decode", 6, 4}, {"disk write", 1.8, 1}};
  const auto bottleneck = FindBottleneck(stages, 2);
  ASSERT_TRUE(bottleneck);
  EXPECT_EQ(bottleneck->stage, "disk write");
  EXPECT_DOUBLE_EQ(bottleneck->share, 0.9);
  EXPECT_FALSE(FindBottleneck(stages, 0));
  EXPECT_FALSE(FindBottleneck(std::span<const StageTime>(), 2));
}

}  // namespace
}  // namespace weir::results
