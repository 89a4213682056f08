#include "study/latency.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "results/trial_result.h"
#include "study/figures.h"

namespace weir::study {
namespace {

using results::LoadResult;

constexpr const char* kMedian = "response_ms.p50";

ChartData DrawPercentiles(const Design& design, const Analysis& analysis, const std::vector<size_t>& order) {
  constexpr std::pair<const char*, double> kPercentiles[] = {
      {"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99_9", 99.9}};
  ChartData chart{.title = "Response time by percentile, the best configurations first",
                  .metric = "response_ms",
                  .x = "percentile"};
  for (const size_t i : order) {
    if (chart.series.size() == kMostSeries) break;
    ChartSeries series{.name = design.configurations[i].label};
    for (const auto& [name, percentile] : kPercentiles) {
      const auto* found = FindFigures(analysis.configurations[i], fmt::format("response_ms.{}", name));
      if (found == nullptr) continue;
      series.points.push_back({.x = percentile,
                               .mean = found->summary.mean,
                               .low = found->summary.low,
                               .high = found->summary.high,
                               .n = found->summary.n,
                               .suspect = analysis.configurations[i].tally.suspect});
    }
    if (series.points.size() > 1) chart.series.push_back(std::move(series));
  }
  return chart;
}

// The curve ends at the highest percentile that the requests support, and at 99 % at the latest: the slowest
// requests would squeeze the rest. The chart of percentiles has those.
ChartData DrawDistribution(const Design& design, const Analysis& analysis, const Measured& measured,
                           const std::vector<size_t>& order) {
  constexpr double kShares[] = {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4,  0.45, 0.5,
                                0.55, 0.6,  0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99};
  ChartData chart{.title = "Distribution of the response time over the requests of all trials",
                  .metric = ChartData::kRequestsPercent,
                  .x = ChartData::kResponseTime};
  for (const size_t i : order) {
    if (chart.series.size() == kMostSeries) break;
    const ResponseCounts counts = MergeResponses(measured, i);
    int64_t n = 0;
    for (const auto& [bucket, count] : counts) n += count;
    ChartSeries series{.name = fmt::format("{}: {} requests", design.configurations[i].label, n)};
    for (const double share : kShares) {
      if (static_cast<double>(n) * (1 - share) < 1) break;
      series.points.push_back(
          {.x = TimeAt(counts, share),
           .mean = 100 * share,
           .n = analysis.configurations[i].tally.valid + analysis.configurations[i].tally.suspect,
           .suspect = analysis.configurations[i].tally.suspect});
    }
    if (series.points.size() > 1) chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

ResponseCounts MergeResponses(const Measured& measured, size_t configuration) {
  ResponseCounts merged;
  for (const Measured::Value& one : measured.TrialsOf(configuration, kMedian)) {
    const auto metrics = results::TrialMetrics::FromJson(one.played->record.metrics);
    if (!metrics) continue;  // of another program
    for (const auto& [bucket, count] : metrics->response_counts) merged[bucket] += count;
  }
  return merged;
}

double TimeAt(const ResponseCounts& counts, double share) {
  int64_t n = 0;
  for (const auto& [bucket, count] : counts) n += count;
  const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(n)));
  int64_t below = 0;
  for (const auto& [bucket, count] : counts) {
    if (below + count >= rank) {
      // Requests of a bucket are taken as spread evenly over it.
      const double begin = LoadResult::BucketBeginMs(bucket), end = LoadResult::BucketBeginMs(bucket + 1);
      return begin + (end - begin) * static_cast<double>(rank - below) / static_cast<double>(count);
    }
    below += count;
  }
  return 0;
}

std::vector<ChartData> DrawLatency(const Design& design, const Analysis& analysis, const Measured& measured) {
  const std::vector<size_t> order = BestFirst(design, analysis, kMedian);
  std::vector<ChartData> charts;
  for (ChartData chart :
       {DrawPercentiles(design, analysis, order), DrawDistribution(design, analysis, measured, order)}) {
    if (!chart.series.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace weir::study
