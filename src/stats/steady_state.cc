#include "stats/steady_state.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "stats/distributions.h"

namespace weir::stats {
namespace {

constexpr int64_t kBatch = 5;  // observations
constexpr int64_t kLeastBatches = 10;
constexpr int64_t kLeastRest = 5;     // batches that a cut leaves
constexpr int64_t kLeastValues = 10;  // for a trend

bool AllFinite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

std::vector<double> MeansOfBatches(std::span<const double> observations) {
  std::vector<double> means(observations.size() / kBatch);
  for (size_t i = 0; i < means.size(); ++i) {
    const auto batch = observations.subspan(i * kBatch, kBatch);
    means[i] = std::accumulate(batch.begin(), batch.end(), 0.0) / kBatch;
  }
  return means;
}

// The square of the marginal standard error of means[d ..], for every d: by Welford from the back.
std::vector<double> MarginalErrors(const std::vector<double>& means) {
  std::vector<double> errors(means.size());
  double mean = 0, squares = 0, n = 0;
  for (int64_t d = std::ssize(means) - 1; d >= 0; --d) {
    n += 1;
    const double difference = means[d] - mean;
    mean += difference / n;
    squares += difference * (means[d] - mean);
    errors[d] = squares / (n * n);
  }
  return errors;
}

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> MidRanks(std::span<const double> values) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (size_t i = first; i <= last; ++i) ranks[order[i]] = static_cast<double>(first + last) / 2 + 1;
    first = last + 1;
  }
  return ranks;
}

}  // namespace

std::optional<Truncation> Mser5(std::span<const double> observations) {
  const std::vector<double> means = MeansOfBatches(observations);
  if (std::ssize(means) < kLeastBatches || !AllFinite(observations)) return std::nullopt;
  const std::vector<double> errors = MarginalErrors(means);
  const auto past_middle = errors.begin() + std::ssize(errors) / 2 + 1;
  const auto best = std::min_element(errors.begin(), past_middle);
  const auto best_of_all = std::min_element(errors.begin(), errors.end() - kLeastRest + 1);
  return Truncation{.cut = (best - errors.begin()) * kBatch, .settled = best_of_all < past_middle};
}

std::optional<Trend> SpearmanTrend(std::span<const double> values) {
  if (std::ssize(values) < kLeastValues || !AllFinite(values)) return std::nullopt;
  const std::vector<double> ranks = MidRanks(values);
  const double n = static_cast<double>(values.size());
  const double mean = (n + 1) / 2;  // of ranks and of positions alike
  double products = 0, squares = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    products += (ranks[i] - mean) * (static_cast<double>(i + 1) - mean);
    squares += (ranks[i] - mean) * (ranks[i] - mean);
  }
  if (squares == 0) return std::nullopt;
  const double squares_of_positions = n * (n * n - 1) / 12;
  const double rho = std::clamp(products / std::sqrt(squares * squares_of_positions), -1.0, 1.0);
  if (std::abs(rho) == 1) return Trend{.rho = rho, .p_value = 0};
  const double t = std::abs(rho) * std::sqrt((n - 2) / (1 - rho * rho));
  return Trend{.rho = rho, .p_value = 2 * StudentTail(n - 2, t)};
}

}  // namespace weir::stats
