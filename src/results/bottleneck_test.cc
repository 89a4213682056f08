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

TEST(FindBounds, AServerIsBoundByItsOwnTimesAloneAndUnknownWithoutThem) {
  Costs costs = AtAServer();
  EXPECT_FALSE(FindBounds(costs).server);
  EXPECT_FALSE(FindBounds(costs).in_flight);
  EXPECT_DOUBLE_EQ(FindBounds(costs).pipeline, 1000 / (7.9 / 4)) << "the round trips as they are";
  costs.server = ServerCosts{.own_s = 3, .queue_s = 4, .alone_s = 1.5};
  EXPECT_DOUBLE_EQ(*FindBounds(costs).server, 1000 / 1.5);
  EXPECT_FALSE(FindBounds(costs).infer);
}

TEST(FindBottleneck, AServerIsTheBottleneckWhereAllInFlightAreWithIt) {
  Costs costs = AtAServer();
  const auto bottleneck = FindBottleneck(costs);
  EXPECT_EQ(bottleneck->stage, "server");
  EXPECT_NEAR(bottleneck->share, 7.9 / 8, 1e-9);
  EXPECT_EQ(bottleneck->gain, 0) << "it tells no times of its own";
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
  EXPECT_EQ(bottleneck->gain, 0);
  costs.wall_s = 3.1;
  costs.server = ServerCosts{.own_s = 1.2, .queue_s = 0.1};
  EXPECT_EQ(FindBottleneck(costs)->stage, "server");
  EXPECT_NEAR(*FindBottleneck(costs)->next_images_per_s, 1000 / 1.8, 1e-9);
  costs.link_s = 0.6;
  EXPECT_EQ(FindBottleneck(costs)->next, "decode");
}

// A load generator with 4 requests on their way all the time: 1,000 pictures in 10 s, a link that takes
// `link_s` for them, and a server that alone takes `alone_s`, by its own account 4 ms a request.
Costs BehindALink(double link_s, double alone_s) {
  return {.images = 1000,
          .wall_s = 10,
          .cores = 2,
          .loaders = 0,
          .remote = true,
          .in_flight = 4,
          .round_trip_s = 40,
          .held_back_s = 10,
          .other_cpu_s = 1,
          .server = ServerCosts{.own_s = 4, .queue_s = 0, .alone_s = alone_s},
          .link_s = link_s};
}

TEST(FindBottleneck, IsTheLinkOrTheServerWhereOneOfThemIsBusyAndElseTheDepth) {
  EXPECT_EQ(FindBottleneck(BehindALink(9.5, 2))->stage, "network");
  EXPECT_EQ(FindBottleneck(BehindALink(9, 9.5))->stage, "server");
  EXPECT_EQ(FindBottleneck(BehindALink(1, 4))->stage, "in_flight");
  EXPECT_EQ(FindBottleneck(BehindALink(7, 1))->stage, "network")
      << "several connections do not quite fill it";
  Costs one = BehindALink(7, 1);
  one.in_flight = 1;
  EXPECT_EQ(FindBottleneck(one)->stage, "in_flight");
}

TEST(FindBottleneck, IsTheCoresWhereNoneIsLeft) {
  Costs costs = BehindALink(6, 4);
  costs.server_cpu_s = 8;
  costs.foreign_cpu_s = 10;
  const auto cores = FindBottleneck(costs);
  EXPECT_EQ(cores->stage, "cpu");
  EXPECT_NEAR(cores->share, 0.95, 1e-12);
  costs.link_s = 8.5;
  EXPECT_EQ(FindBottleneck(costs)->stage, "network");
}

// The relief of the link leaves what the server says of itself, not the round trips that waited for the link.
TEST(FindBottleneck, KnowsWhatHoldsBackWithTheLinkGoneByTheServersOwnTimes) {
  const auto found = FindBottleneck(BehindALink(9.9, 1.9));
  EXPECT_EQ(found->next, "server");
  EXPECT_NEAR(*found->next_images_per_s, 1000 / 1.9, 1e-9);
  EXPECT_NEAR(found->gain, 2, 1e-9) << "a link twice as fast";
  EXPECT_EQ(Contradiction(FindBounds(BehindALink(9.9, 1.9)), "network", 100), "");
  Costs shallow = BehindALink(9.9, 0.1);  // the depth allows 4 requests in 4 ms
  EXPECT_EQ(FindBottleneck(shallow)->next, "in_flight");
  EXPECT_NEAR(*FindBottleneck(shallow)->next_images_per_s, 1000, 1e-9);
  shallow.server_cpu_s = 9;  // with the client's second on two cores
  EXPECT_EQ(FindBottleneck(shallow)->next, "cpu");
  EXPECT_NEAR(*FindBottleneck(shallow)->next_images_per_s, 200, 1e-9);
}

TEST(FindBottleneck, TellsNoNextWhereTheServersOwnRateIsNotKnown) {
  Costs costs = BehindALink(9.9, 1);
  costs.server->alone_s.reset();
  EXPECT_EQ(FindBottleneck(costs)->stage, "network");
  EXPECT_FALSE(FindBottleneck(costs)->next_images_per_s);
  costs.server.reset();
  EXPECT_FALSE(FindBottleneck(costs)->next_images_per_s);
  costs.link_s.reset();
  EXPECT_EQ(FindBottleneck(costs)->stage, "server");
  EXPECT_EQ(FindBottleneck(costs)->gain, 0);
}

TEST(FindBottleneck, OneRequestAtATimeKeepsWhatIsNeitherLinkNorServer) {
  Costs costs = BehindALink(9, 0.5);
  costs.in_flight = 1;
  costs.round_trip_s = 10;
  costs.server->own_s = 0.5;
  const auto found = FindBottleneck(costs);
  EXPECT_EQ(found->stage, "network");
  EXPECT_EQ(found->next, "in_flight");
  EXPECT_NEAR(*found->next_images_per_s, 1000, 1e-9);  // 10 s less the link's 9
}

TEST(FindBottleneck, AnOpenLoopThatIsServedIsBoundByItsRate) {
  Costs costs = BehindALink(1, 4);
  costs.in_flight = 0;
  costs.rate_limit_s = 10;
  const auto found = FindBottleneck(costs);
  EXPECT_EQ(found->stage, "rate");
  EXPECT_EQ(found->next, "server");
  EXPECT_NEAR(*found->next_images_per_s, 250, 1e-9);
}

TEST(FindBottleneck, WithoutASeenLinkTheLongerPartOfTheRoundTripIsNamed) {
  Costs costs = BehindALink(0, 4);
  costs.link_s.reset();
  const auto way = FindBottleneck(costs);
  EXPECT_EQ(way->stage, "network");
  EXPECT_NEAR(way->share, 0.9, 1e-9);
  EXPECT_NEAR(*way->next_images_per_s, 250, 1e-9);
  costs.server->own_s = 30;
  EXPECT_EQ(FindBottleneck(costs)->stage, "in_flight") << "the server is busy for 40 % of the time";
  costs.server->alone_s.reset();
  EXPECT_EQ(FindBottleneck(costs)->stage, "server");
}

TEST(CostsOf, AServersOwnRateFollowsOfItsTimesOrOfItsCpuTime) {
  ServerAccount account{.requests = 100,
                        .queue_s = 3,
                        .input_s = 1,
                        .infer_s = 8,
                        .output_s = 1,
                        .rows_per_batch = 8,
                        .rows_per_request = 2,
                        .instances = 2,
                        .threads = 0,
                        .most_rows = 8};
  // 4 requests a batch are each told the batch's 80 ms: 25 batches on two instances.
  EXPECT_NEAR(*CostsOf(account).alone_s, 1, 1e-12);
  EXPECT_NEAR(CostsOf(account).own_s, 10, 1e-12);
  account.most_rows = 16;
  EXPECT_FALSE(CostsOf(account).alone_s) << "larger batches could be made, and their time is not known";
  account.most_rows = 2;
  account.threads = 4;
  EXPECT_FALSE(CostsOf(account).alone_s) << "a CPU engine's times stretch";
  account.cpu_s = 6;
  account.cores = 2;
  EXPECT_NEAR(*CostsOf(account).alone_s, 3, 1e-12);
  account.instances.reset();
  EXPECT_FALSE(CostsOf(account).alone_s);
}

TEST(Contradiction, NamesThePartThatWouldHaveHeldBackFirst) {
  EXPECT_EQ(Contradiction({.infer = 50, .network = 100}, "network", 99),
            "network is named, which holds back at 100, but infer at 50 images/s");
  EXPECT_EQ(Contradiction({.infer = 150, .network = 100}, "network", 99), "");
  EXPECT_EQ(Contradiction({.read = 150, .decode = 100, .loaders = 60, .infer = 80}, "decode", 59), "")
      << "reading and decoding share their threads";
  EXPECT_NE(Contradiction({.infer = 50}, "in_flight", 99), "");
}

TEST(FindBottleneck, StorageGoneLeavesTheDecoding) {
  Costs costs = Balanced();
  costs.wall_s = 3;
  costs.load_blocked_s = 5;
  costs.engine_busy_s = 0.1;
  costs.round_trip_s = 0.2;
  const auto found = FindBottleneck(costs);
  EXPECT_EQ(found->next, "decode");
  EXPECT_NEAR(*found->next_images_per_s, 2000, 1e-9);
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
