#include "study/latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "results/load_result.h"
#include "results/trial_result.h"

namespace weir::study {
namespace {

using results::LoadResult;
using testing::HasSubstr;
using testing::SizeIs;

TEST(TimeAt, IsWithinABucketOfTheQuantile) {
  // 1,000 requests of 1 to 1,000 ms.
  ResponseCounts counts;
  for (int ms = 1; ms <= 1000; ++ms) ++counts[LoadResult::BucketOf(ms)];
  for (const double share : {0.01, 0.1, 0.5, 0.9, 0.99, 1.0})
    EXPECT_NEAR(TimeAt(counts, share) / (1000 * share), 1, 0.023) << share;
  EXPECT_EQ(TimeAt({}, 0.5), 0);
}

TEST(BucketOf, IsTheBucketThatHoldsTheTime) {
  for (const double ms : {0.001, 0.01, 0.5, 1.0, 3.7, 250.0, 1e5}) {
    const int64_t bucket = LoadResult::BucketOf(ms);
    EXPECT_LE(LoadResult::BucketBeginMs(bucket), ms * (1 + 1e-12));
    EXPECT_GT(LoadResult::BucketBeginMs(bucket + 1), ms * (1 - 1e-12));
  }
  EXPECT_EQ(LoadResult::BucketOf(0), 0);
}

TEST(DrawLatency, MergesTheRequestsOfAllTrialsThatCount) {
  const auto file =
      ParseStudy("study: s\nmodel: m\nfixed: {load: closed}\nfactors: {batch: [1, 8]}\nrepeats: 3\n").value();
  const Design design = MakeDesign(file).value();
  std::vector<PlayedTrials> played;
  for (const Trial& trial : design.trials) {
    // Batch 8 takes four times as long. Block 2 is invalid, with times that nobody may see.
    const double ms = (trial.configuration == 0 ? 1.0 : 4.0) * (trial.block == 2 ? 100 : 1);
    results::TrialMetrics metrics;
    metrics.throughput_images_per_s = 100;
    metrics.response = LoadResult::Times{.mean = ms, .min = ms, .percentiles = {ms, ms}, .max = ms, .n = 100};
    metrics.response_counts = {{LoadResult::BucketOf(ms), 90}, {LoadResult::BucketOf(2 * ms), 10}};
    PlayedTrials one{.trial = trial};
    one.record.metrics = metrics.ToJson();
    if (trial.block == 2) one.record.verdict.standing = results::Standing::kInvalid;
    played.push_back(std::move(one));
  }
  const Measured measured(design, played);
  const ResponseCounts merged = MergeResponses(measured, 0);
  ASSERT_THAT(merged, SizeIs(2));
  EXPECT_EQ(merged.begin()->second, 180);  // two blocks; references are left out
  EXPECT_NEAR(TimeAt(merged, 0.5), 1, 0.023);
  EXPECT_NEAR(TimeAt(merged, 0.95), 2, 0.05);
  const auto charts = DrawLatency(design, Analyse(file, design, played), measured);
  ASSERT_THAT(charts, SizeIs(2));
  const results::ChartData& chart = charts[1];
  EXPECT_EQ(chart.metric, results::ChartData::kRequestsPercent);
  ASSERT_THAT(chart.series, SizeIs(2));
  EXPECT_THAT(chart.series[0].name, HasSubstr(": 200 requests"));
  double x = 0, share = 0;
  for (const results::ChartData::Point& point : chart.series[0].points) {
    EXPECT_GE(*point.x, x);
    EXPECT_GT(point.mean, share);
    x = *point.x;
    share = point.mean;
  }
  EXPECT_EQ(share, 99);
}

}  // namespace
}  // namespace weir::study
