#include "predict/interval/spread.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "stats/median.h"

namespace weir::predict {
namespace {

constexpr size_t kFewest = 60;      // samples, to learn how errors differ
constexpr int kParts = 10;          // of samples without groups
constexpr double kFloor = 0.004;    // added to an error before its logarithm: smaller ones are noise
constexpr double kNoise = 4;        // of one error, times the kernel's own variance
constexpr double kDistance = 0.25;  // power of the variance
constexpr double kLeastWidth = 0.002, kGreatestWidth = 20;
constexpr double kUsual = 0.99;        // of left-out rows
constexpr double kOfGroup = 0.85;      // of a group's rows must lie within
constexpr double kOfGroups = 0.8;      // of the groups
constexpr double kFew = 2;             // groups that add as much as all that were seen
constexpr double kMostOfGroups = 2.5;  // times the scale that holds the rows

// Returns the (n + 1) coverage / n quantile of conformal prediction.
double Conformal(std::span<const double> scores, double coverage) {
  const auto n = static_cast<double>(scores.size());
  const std::vector<double> alike(scores.size(), 1.0);
  return stats::WeightedQuantile(scores, alike, std::min(1.0, coverage * (n + 1) / n));
}

// Returns the scale that holds most groups: each group's own scale is one sample of those to come. Few groups
// show little of what others may be.
double ScaleOfGroups(std::span<const double> scores, std::span<const LeftOut> samples) {
  std::map<std::string, std::vector<double>> by_group;
  for (size_t i = 0; i < samples.size(); ++i) by_group[samples[i].group].push_back(scores[i]);
  std::vector<double> of_group;
  for (const auto& [name, of_rows] : by_group) of_group.push_back(Conformal(of_rows, kOfGroup));
  return Conformal(of_group, kOfGroups) * (1 + kFew / static_cast<double>(of_group.size()));
}

double ScaleOf(std::span<const double> scores, std::span<const LeftOut> samples,
               const Spread::Options& options) {
  const double of_rows = Conformal(scores, options.coverage);
  if (!options.of_new_group) return of_rows;
  return std::clamp(ScaleOfGroups(scores, samples), of_rows, kMostOfGroups * of_rows);
}

// The interval score (Gneiting and Raftery 2007): half-width + the miss beyond it / (1 - coverage).
double IntervalScore(std::span<const LeftOut> samples, std::span<const double> half_widths, double coverage) {
  double score = 0;
  for (size_t i = 0; i < samples.size(); ++i)
    score += half_widths[i] + std::max(0.0, std::abs(samples[i].miss) - half_widths[i]) / (1 - coverage);
  return score;
}

// Numbers the samples that are left out together when errors are learned from errors.
std::vector<int> PartsOf(std::span<const LeftOut> samples, bool by_group) {
  std::map<std::string, int> numbers;
  std::vector<int> parts;
  for (size_t i = 0; i < samples.size(); ++i)
    parts.push_back(by_group
                        ? numbers.emplace(samples[i].group, static_cast<int>(numbers.size())).first->second
                        : static_cast<int>(i % kParts));
  return parts;
}

double WithinLimits(double half_width) { return std::clamp(half_width, kLeastWidth, kGreatestWidth); }

}  // namespace

Spread::Learned Spread::Learn(const Estimator& estimator, const Data& data, std::span<const LeftOut> samples,
                              const Options& options) {
  std::vector<double> sizes, logs;
  std::vector<int> rows;
  for (const LeftOut& sample : samples) {
    sizes.push_back(std::abs(sample.miss));
    logs.push_back(std::log(sizes.back() + kFloor));
    rows.push_back(sample.row);
  }
  const double constant = ScaleOf(sizes, samples, options);
  Learned learned{.spread = Constant(constant), .half_widths = std::vector<double>(sizes.size(), constant)};
  const Neighbours* neighbours = estimator.neighbours();
  if (neighbours == nullptr || sizes.size() < kFewest) return learned;
  const double constant_score = IntervalScore(samples, learned.half_widths, options.coverage);

  double middle = 0;
  for (const double log : logs) middle += log / static_cast<double>(logs.size());
  for (double& log : logs) log -= middle;
  Kernel kernel = neighbours->kernel();
  kernel.noise = kNoise * (kernel.all + kernel.network + kernel.hardware + kernel.run);
  const Points points = estimator.likeness().PointsOf(data, rows);
  Spread& spread = learned.spread;
  spread.difficulty_.emplace(points, std::move(logs), std::move(kernel), neighbours->count());
  spread.rows_ = std::move(rows);

  const std::vector<int> parts = PartsOf(samples, options.of_new_group);
  std::vector<double> scores(sizes.size());
  std::vector<char> mine(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t k = 0; k < mine.size(); ++k) mine[k] = parts[k] == parts[i] ? 1 : 0;
    const auto at = static_cast<int64_t>(i);
    learned.half_widths[i] =
        std::exp(spread.difficulty_->At(points.NumbersOf(at), points.CodesOf(at), mine).mean) *
        std::pow(samples[i].variance, kDistance);
    scores[i] = sizes[i] / learned.half_widths[i];
  }
  spread.scale_ = ScaleOf(scores, samples, options);
  std::vector<double> variances;
  for (const LeftOut& sample : samples) variances.push_back(sample.variance);
  spread.usual_ = Conformal(variances, kUsual);
  for (double& half : learned.half_widths) half = WithinLimits(spread.scale_ * half);
  learned.score_of_constant =
      IntervalScore(samples, learned.half_widths, options.coverage) / std::max(constant_score, 1e-12);
  return learned;
}

Spread Spread::Constant(double half_width) {
  Spread spread;
  spread.scale_ = half_width;
  return spread;
}

Spread Spread::Times(double factor) const {
  Spread wider = *this;
  wider.scale_ *= factor;
  return wider;
}

double Spread::HalfWidth(std::span<const float> numbers, std::span<const int> codes, double variance) const {
  if (!difficulty_) return WithinLimits(scale_);
  return WithinLimits(scale_ * std::exp(difficulty_->At(numbers, codes).mean) *
                      std::pow(variance, kDistance));
}

double Spread::TimesFarther(double variance) const {
  return usual_ > 0 ? std::max(1.0, variance / usual_) : 1;
}

bool Spread::Join(const Estimator& estimator, const Data& data) {
  if (!difficulty_) return true;
  const auto is_row = [&](int row) { return row >= 0 && row < data.points.size(); };
  return estimator.neighbours() != nullptr && std::ranges::all_of(rows_, is_row) &&
         difficulty_->SetPoints(estimator.likeness().PointsOf(data, rows_));
}

}  // namespace weir::predict
