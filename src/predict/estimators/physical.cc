#include "predict/estimators/physical.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "predict/validation/importance.h"
#include "stats/median.h"

namespace weir::predict {
namespace {

constexpr int kMostGroups = 30;  // in the text
constexpr int kSteps = 8;        // of Gauss and Newton
constexpr int kHalvings = 6;     // of a step that would make the fit worse
constexpr int kSweeps = 80;      // of coordinate descent, at most, a step
constexpr double kHuber = 0.35;  // residuals of the logarithm beyond this count linearly only

double Dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

// Minimises (w - prior)' diag(penalty) (w - prior) + w'Aw - 2 b'w over w >= least by coordinate descent,
// which converges as the problem is convex (Franc, Hlavac and Navara 2005).
void Descend(const std::vector<double>& least, const std::vector<double>& a, const std::vector<double>& b,
             const std::vector<double>& penalty, const std::vector<double>& prior, std::vector<double>& w) {
  const size_t n = b.size();
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double change = 0, size = 0;
    for (size_t k = 0; k < n; ++k) {
      const double curvature = a[k * n + k] + penalty[k];
      if (!(curvature > 0)) continue;
      const double slope = b[k] + penalty[k] * prior[k] - Dot({&a[k * n], n}, w) + a[k * n + k] * w[k];
      const double next = std::max(least[k], slope / curvature);
      change += std::abs(next - w[k]) * std::sqrt(curvature);
      size += next * std::sqrt(curvature);
      w[k] = next;
    }
    if (change <= 1e-9 * size) return;
  }
}

std::vector<double> RowImportance(const std::vector<Row>& rows, std::span<const int> use, bool even) {
  std::vector<std::string_view> hardware;
  for (const int i : use) hardware.push_back(rows[static_cast<size_t>(i)].hardware);
  return ImportanceOf(hardware, [even](double n) { return even ? 1 / (n + 1) : 1; });
}

double Square(double x) { return x * x; }

// Rows of one group, and the prior of their weights.
struct Problem {
  const std::vector<Row>& rows;
  std::span<const int> use;
  const std::vector<double>& prior;
  const std::vector<double>& importance;  // of the rows in `use`, 1 in the mean
  const std::vector<double>& least;       // of the weights

  // log(measured / predicted).
  double Residual(int row, const std::vector<double>& w) const {
    const Row& one = rows[static_cast<size_t>(row)];
    return std::log(*one.time / std::max(Dot(one.terms, w), 1e-300));
  }

  double Loss(const std::vector<double>& w, const std::vector<double>& penalty) const {
    double loss = 0;
    for (size_t i = 0; i < use.size(); ++i) {
      const double size = std::abs(Residual(use[i], w));
      loss += importance[i] * (size < kHuber ? size * size : kHuber * (2 * size - kHuber));
    }
    for (size_t k = 0; k < w.size(); ++k) loss += penalty[k] * Square(w[k] - prior[k]);
    return loss;
  }

  // Returns the weights that minimise log(time / predicted), linear about `w`. Sets `penalty` to the pull of
  // `pull` rows, in the unit of each term.
  std::vector<double> Step(const std::vector<double>& w, double pull, std::vector<double>& penalty) const {
    const size_t n = w.size();
    std::vector<double> a(n * n, 0.0), b(n, 0.0);
    for (size_t i = 0; i < use.size(); ++i) {
      const Row& row = rows[static_cast<size_t>(use[i])];
      const double predicted = std::max(Dot(row.terms, w), 1e-300), residual = Residual(use[i], w);
      const double weight = importance[i] * std::min(1.0, kHuber / std::max(std::abs(residual), 1e-12));
      for (size_t k = 0; k < n; ++k) {
        const double x = row.terms[k] / predicted;
        b[k] += weight * x * (1 + residual);
        for (size_t l = 0; l < n; ++l) a[k * n + l] += weight * x * row.terms[l] / predicted;
      }
    }
    for (size_t k = 0; k < n; ++k) {
      penalty[k] = pull * a[k * n + k] / static_cast<double>(use.size()) + 1e-12 * a[k * n + k];
    }
    std::vector<double> next = w;
    Descend(least, a, b, penalty, prior, next);
    return next;
  }
};

std::vector<double> LeastOf(const Physical::Options& options, size_t terms) {
  return options.least.empty() ? std::vector<double>(terms, 0.0) : options.least;
}

std::vector<double> AtLeast(std::vector<double> weights, const std::vector<double>& least) {
  for (size_t k = 0; k < weights.size(); ++k) weights[k] = std::max(weights[k], least[k]);
  return weights;
}

// Returns weights for rows `use`, beginning at and pulled to `prior`. If weights are several times too large,
// the linear step would make all of them 0, so a step is halved until the loss falls.
std::vector<double> FitWeights(const std::vector<Row>& rows, std::span<const int> use,
                               const std::vector<double>& prior, const Physical::Options& options) {
  const std::vector<double> importance = RowImportance(rows, use, options.even);
  const std::vector<double> least = LeastOf(options, prior.size());
  const Problem problem{rows, use, prior, importance, least};
  std::vector<double> w = AtLeast(prior, least), penalty(prior.size(), 0.0);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<double> next = problem.Step(w, options.pull, penalty);
    const double before = problem.Loss(w, penalty);
    std::optional<std::vector<double>> better;
    double part = 1;
    for (int halving = 0; halving < kHalvings && !better; ++halving, part /= 2) {
      std::vector<double> trial = w;
      for (size_t k = 0; k < w.size(); ++k) trial[k] += part * (next[k] - w[k]);
      if (problem.Loss(trial, penalty) < before) better = std::move(trial);
    }
    if (!better) break;
    w = std::move(*better);
  }
  return w;
}

// Returns a first guess in which every term takes the same share of the median row.
std::vector<double> Start(const std::vector<Row>& rows, std::span<const int> use) {
  const size_t n = rows[static_cast<size_t>(use.front())].terms.size();
  std::vector<double> start(n, 0.0);
  for (size_t k = 0; k < n; ++k) {
    std::vector<double> ratios;
    for (const int i : use) {
      const Row& row = rows[static_cast<size_t>(i)];
      if (row.terms[k] > 0) ratios.push_back(*row.time / row.terms[k]);
    }
    if (ratios.empty()) continue;
    start[k] = stats::Median(std::move(ratios)) / static_cast<double>(n);
  }
  return start;
}

// Returns the common weights scaled to the level of a group's rows: a network has its own efficiency, but the
// others' composition until many rows show another. Of n rows n / (n + 1) counts.
std::vector<double> AtLevel(std::vector<double> weights, const std::vector<Row>& rows,
                            std::span<const int> members) {
  std::vector<double> ratios;
  for (const int i : members) {
    const Row& row = rows[static_cast<size_t>(i)];
    if (const double time = Dot(row.terms, weights); time > 0) ratios.push_back(std::log(*row.time / time));
  }
  if (ratios.empty()) return weights;
  const auto count = static_cast<double>(ratios.size());
  const double level = std::exp(stats::Median(std::move(ratios)) * count / (count + 1));
  for (double& weight : weights) weight *= level;
  return weights;
}

std::vector<double> SharesOf(std::span<const double> terms, std::span<const double> weights) {
  std::vector<double> shares(terms.size(), 0.0);
  const double time = Dot(terms, weights);
  for (size_t k = 0; k < shares.size() && time > 0; ++k) shares[k] = weights[k] * terms[k] / time;
  return shares;
}

}  // namespace

Physical Physical::Fit(const std::vector<Row>& rows, std::span<const int> use, const Options& options) {
  Physical physical;
  Options together = options;
  together.pull = 0;
  physical.common_ = FitWeights(rows, use, Start(rows, use), together);
  if (!std::isfinite(options.pull)) return physical;
  std::map<std::string, std::vector<int>> groups;
  for (const int i : use) groups[rows[static_cast<size_t>(i)].group].push_back(i);
  if (groups.size() < 2) return physical;
  for (const auto& [group, members] : groups) {
    const std::vector<double> prior =
        options.own_level ? AtLevel(physical.common_, rows, members) : physical.common_;
    physical.groups_[group] = FitWeights(rows, members, prior, options);
  }
  return physical;
}

const std::vector<double>& Physical::WeightsOf(const Row& row) const {
  const auto found = groups_.find(row.group);
  return found == groups_.end() ? common_ : found->second;
}

double Physical::Time(const Row& row) const {
  const double own = Dot(row.terms, WeightsOf(row));
  if (own > 0) return own;
  return CommonTime(row);  // the group's rows gave these terms no weight
}

double Physical::CommonTime(const Row& row) const {
  const double common = Dot(row.terms, common_);
  return common > 0 ? common : std::max(1e-9, std::reduce(row.terms.begin(), row.terms.end()));
}

std::vector<double> Physical::Shares(const Row& row) const {
  const std::vector<double>& own = WeightsOf(row);
  return SharesOf(row.terms, Dot(row.terms, own) > 0 ? own : common_);
}

std::vector<double> Physical::CommonShares(const Row& row) const { return SharesOf(row.terms, common_); }

std::string Physical::Text(const Spec& spec) const {
  const auto sum = [&spec](const std::vector<double>& weights) {
    std::string text;
    for (size_t k = 0; k < weights.size(); ++k) {
      if (weights[k] > 0)
        text += fmt::format("{}{:.4g} * {}", text.empty() ? "" : " + ", weights[k], spec.terms[k].name);
    }
    return text;
  };
  std::string text = fmt::format("  time_ms = {}\n", sum(common_));
  int said = 0;
  for (const auto& [group, weights] : groups_) {
    if (said++ == kMostGroups) break;
    text += fmt::format("  {}: time_ms = {}\n", group, sum(weights));
  }
  if (std::ssize(groups_) > kMostGroups)
    text += fmt::format("  and {} more, each with weights of its own\n", std::ssize(groups_) - kMostGroups);
  return text;
}

}  // namespace weir::predict
