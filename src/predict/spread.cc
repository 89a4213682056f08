#include "predict/spread.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "stats/summary.h"

namespace weir::predict {
namespace {

constexpr int kParts = 5;
constexpr size_t kFewest = 120;   // samples from which difficulty can be learned
constexpr double kFloor = 0.004;  // added to a miss before its logarithm: below it all are noise
constexpr double kLeastWidth = 0.002;
constexpr double kConfidence = 0.9, kNormal = 1.645;  // the normal distribution's quantile of it
constexpr double kMostWider = 2;                      // of an interval that says nothing nobody learns

// The (n + 1) coverage / n quantile: conformal's.
double Conformal(std::vector<double> scores, double coverage) {
  const auto n = static_cast<double>(scores.size());
  const auto rank = static_cast<size_t>(std::clamp(std::ceil((n + 1) * coverage), 1.0, n)) - 1;
  std::ranges::nth_element(scores, scores.begin() + static_cast<std::ptrdiff_t>(rank));
  return scores[rank];
}

}  // namespace

Result<Spread> Spread::Learn(std::span<const float> x, int columns, std::span<const double> misses,
                             std::span<const int> parts, double coverage, Seed seed) {
  std::vector<double> sizes(misses.size());
  std::ranges::transform(misses, sizes.begin(), [](double miss) { return std::abs(miss); });
  if (columns == 0 || sizes.size() < kFewest) return Constant(Conformal(sizes, coverage));

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
  std::vector<double> scores(sizes.size());
  double difficulty = 0;  // the mean of its logarithm
  for (int part = 0; part < kParts; ++part) {
    const auto mine = [&](size_t i) { return parts[i] % kParts == part; };
    size_t others = 0;
    for (size_t i = 0; i < sizes.size(); ++i) others += mine(i) ? 0 : 1;
    if (others < kFewest / 2) return Constant(Conformal(sizes, coverage));
    const Trees trees = TRY(fit([&](size_t i) { return !mine(i); }));
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!mine(i)) continue;
      const auto row = x.subspan(i * static_cast<size_t>(columns), static_cast<size_t>(columns));
      const double log_miss = trees.Predict(row);
      difficulty += log_miss / static_cast<double>(sizes.size());
      scores[i] = sizes[i] / std::exp(log_miss);
    }
  }
  const double scale = Conformal(std::move(scores), coverage), constant = Conformal(sizes, coverage);
  // What made rows of some hardware difficult may say nothing of others': then one width for all is narrower.
  if (constant <= scale * std::exp(difficulty)) return Constant(constant);
  Spread spread;
  spread.difficulty_ = TRY(fit([](size_t) { return true; }));
  spread.scale_ = scale;
  return spread;
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

double Spread::HalfWidth(std::span<const float> x) const {
  const double difficulty = difficulty_ ? std::exp(difficulty_->Predict(x)) : 1;
  return std::clamp(scale_ * difficulty, kLeastWidth, 20.0);
}

Json Spread::ToJson() const {
  Json json{{"scale", scale_}};
  if (difficulty_) json["difficulty"] = difficulty_->ToJson();
  return json;
}

Result<Spread> Spread::FromJson(const Json& json, int columns) {
  Spread spread;
  spread.scale_ = TRY(GetNumber(json, "scale"));
  if (json.contains("difficulty")) {
    spread.difficulty_ = TRY(Trees::FromJson(json["difficulty"]));
    if (spread.difficulty_->columns() != columns) {
      return Fail(ErrorCode::kCorrupt, "the trees of an interval do not fit the spec");
    }
  }
  return spread;
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
