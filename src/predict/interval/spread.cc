#include "predict/interval/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "stats/median.h"
#include "stats/summary.h"

namespace weir::predict {
namespace {

constexpr int kParts = 5;
constexpr size_t kFewest = 120;   // samples, to learn the expected error
constexpr double kFloor = 0.004;  // added to an error before its logarithm: smaller ones are noise
constexpr double kLeastWidth = 0.002, kGreatestWidth = 20, kGreatestCoverage = 0.99;
constexpr double kConfidence = 0.9, kNormal = 1.645;  // the normal distribution's quantile of it
constexpr double kMostWider = 2;                      // a wider interval would be no use

double WithinLimits(double half_width, double greatest) {
  return std::clamp(half_width, kLeastWidth, std::clamp(greatest, kLeastWidth, kGreatestWidth));
}

// Returns the (n + 1) coverage / n quantile of conformal prediction.
double Conformal(std::span<const double> scores, std::span<const double> importance, double coverage) {
  const auto n = static_cast<double>(scores.size());
  return stats::WeightedQuantile(scores, importance, std::min(1.0, coverage * (n + 1) / n));
}

}  // namespace

Result<Spread::Learned> Spread::Learn(std::span<const float> x, int columns, std::span<const double> misses,
                                      std::span<const double> importance, std::span<const int> parts,
                                      double coverage, Seed seed) {
  std::vector<double> sizes(misses.size());
  std::ranges::transform(misses, sizes.begin(), [](double miss) { return std::abs(miss); });
  const double constant = Conformal(sizes, importance, coverage);
  // The trees may extrapolate to very wide intervals; this width holds nearly all rows.
  const double greatest = Conformal(sizes, importance, kGreatestCoverage);
  const Learned same{.spread = Constant(constant),
                     .half_widths = std::vector<double>(sizes.size(), constant)};
  if (columns == 0 || sizes.size() < kFewest) return same;

  const Trees::Options options{.rounds = 120,
                               .rate = 0.06,
                               .depth = 4,
                               .child_weight = 12,
                               .column_share = 0.6,
                               .penalty = 5,
                               .seed = seed.value()};
  const auto fit = [&](const auto& wanted) -> Result<Trees> {
    std::vector<float> rows, y;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!wanted(i)) continue;
      const auto row = x.subspan(i * static_cast<size_t>(columns), static_cast<size_t>(columns));
      rows.insert(rows.end(), row.begin(), row.end());
      y.push_back(static_cast<float>(std::log(sizes[i] + kFloor)));
    }
    return Trees::Fit(rows, columns, y, options);
  };
  std::vector<double> difficulty(sizes.size());  // logarithm of the expected error
  double middle = 0;
  for (int part = 0; part < kParts; ++part) {
    const auto mine = [&](size_t i) { return parts[i] % kParts == part; };
    size_t others = 0;
    for (size_t i = 0; i < sizes.size(); ++i) others += mine(i) ? 0 : 1;
    if (others < kFewest / 2) return same;
    const Trees trees = TRY(fit([&](size_t i) { return !mine(i); }));
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!mine(i)) continue;
      const auto row = x.subspan(i * static_cast<size_t>(columns), static_cast<size_t>(columns));
      difficulty[i] = trees.Predict(row);
      middle += difficulty[i] / static_cast<double>(sizes.size());
    }
  }
  // The interval score (Gneiting and Raftery 2007): half-width + the miss beyond it / (1 - coverage).
  const auto score_of = [&](const std::vector<double>& half_widths) {
    double score = 0;
    for (size_t i = 0; i < sizes.size(); ++i)
      score += importance[i] * (half_widths[i] + std::max(0.0, sizes[i] - half_widths[i]) / (1 - coverage));
    return score;
  };
  Learned best = same;
  const double constant_score = score_of(same.half_widths);
  double least = std::numeric_limits<double>::infinity();
  for (const double belief : {0.0, 0.5, 1.0}) {
    std::vector<double> expected(sizes.size()), scores(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      expected[i] = std::exp(belief * (difficulty[i] - middle));
      scores[i] = sizes[i] / expected[i];
    }
    const double scale = Conformal(scores, importance, coverage);
    for (double& half : expected) half = WithinLimits(scale * half, greatest);
    const double score = score_of(expected);
    if (score >= least) continue;
    least = score;
    best.half_widths = std::move(expected);
    best.score_of_constant = constant_score > 0 ? score / constant_score : 1;
    best.spread.scale_ = scale * std::exp(-belief * middle);
    best.spread.belief_ = belief;
  }
  best.spread.greatest_ = greatest;
  if (best.spread.belief_ > 0) best.spread.difficulty_ = TRY(fit([](size_t) { return true; }));
  return best;
}

Spread Spread::Constant(double half_width) {
  Spread spread;
  spread.scale_ = half_width;
  spread.greatest_ = half_width;
  return spread;
}

Spread Spread::Times(double factor) const {
  Spread wider = *this;
  wider.scale_ *= factor;
  wider.greatest_ *= factor;
  return wider;
}

double Spread::HalfWidth(std::span<const float> x) const {
  const double difficulty = difficulty_ ? std::exp(belief_ * difficulty_->Predict(x)) : 1;
  return WithinLimits(scale_ * difficulty, greatest_);
}

double ForAnotherGroup(std::span<const double> misses, std::span<const std::string> groups) {
  struct Sum {
    double count = 0, total = 0, squares = 0;
  };
  std::map<std::string, Sum> sums;
  for (size_t i = 0; i < misses.size(); ++i) {
    Sum& sum = sums[groups[i]];
    sum.count += 1;
    sum.total += misses[i];
    sum.squares += misses[i] * misses[i];
  }
  if (sums.size() < 2) return 1;
  double common = 0, all = 0;  // mean squares, each group as much as another
  for (const auto& [group, sum] : sums) {
    common += sum.total * sum.total / (sum.count * sum.count);
    all += sum.squares / sum.count;
  }
  if (!(all > 0)) return 1;
  const auto count = static_cast<double>(sums.size());
  const double few = std::min(
      kMostWider, stats::StudentT(kConfidence, std::ssize(sums) - 1) * std::sqrt(1 + 1 / count) / kNormal);
  return std::sqrt(1 + common / all * (few * few - 1));
}

}  // namespace weir::predict
