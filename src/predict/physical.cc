#include "predict/physical.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "predict/median.h"

namespace weir::predict {
namespace {

constexpr int kSteps = 8;        // of Gauss and Newton
constexpr int kSweeps = 80;      // of coordinate descent, at most, a step
constexpr double kHuber = 0.35;  // residuals of the logarithm beyond this count linearly only

double Dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

// Minimises (w - prior)' diag(penalty) (w - prior) + w'Aw - 2 b'w over w >= 0 by coordinate descent, which
// converges as the problem is convex (Franc, Hlavac and Navara 2005).
void DescendNonNegative(const std::vector<double>& a, const std::vector<double>& b,
                        const std::vector<double>& penalty, const std::vector<double>& prior,
                        std::vector<double>& w) {
  const size_t n = b.size();
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double change = 0, size = 0;
    for (size_t k = 0; k < n; ++k) {
      const double curvature = a[k * n + k] + penalty[k];
      if (!(curvature > 0)) continue;
      const double slope = b[k] + penalty[k] * prior[k] - Dot({&a[k * n], n}, w) + a[k * n + k] * w[k];
      const double next = std::max(0.0, slope / curvature);
      change += std::abs(next - w[k]) * std::sqrt(curvature);
      size += next * std::sqrt(curvature);
      w[k] = next;
    }
    if (change <= 1e-9 * size) return;
  }
}

// Weights for rows `use`, beginning at and pulled to `prior`.
std::vector<double> FitWeights(const std::vector<Row>& rows, std::span<const int> use,
                               const std::vector<double>& prior, double pull) {
  const size_t n = prior.size();
  std::vector<double> w = prior;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> a(n * n, 0.0), b(n, 0.0), penalty(n, 0.0);
    for (const int i : use) {
      const Row& row = rows[static_cast<size_t>(i)];
      const double predicted = std::max(Dot(row.terms, w), 1e-300);
      // log(time / predicted), linear in the weights about those of the last step.
      const double residual = std::clamp(std::log(*row.time / predicted), -2.0, 2.0);
      const double weight = std::min(1.0, kHuber / std::max(std::abs(residual), 1e-12));
      for (size_t k = 0; k < n; ++k) {
        const double x = row.terms[k] / predicted;
        b[k] += weight * x * (1 + residual);
        for (size_t l = 0; l < n; ++l) a[k * n + l] += weight * x * row.terms[l] / predicted;
      }
    }
    // The pull of `pull` rows: in each term's own unit, by its mean square over the rows.
    for (size_t k = 0; k < n; ++k) {
      penalty[k] = pull * a[k * n + k] / static_cast<double>(use.size()) + 1e-12 * a[k * n + k];
    }
    const std::vector<double> before = w;
    DescendNonNegative(a, b, penalty, prior, w);
    if (Dot(w, w) == 0) return before;
  }
  return w;
}

// A first guess at which every term takes the same part of the median row.
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
    start[k] = Median(std::move(ratios)) / static_cast<double>(n);
  }
  return start;
}

}  // namespace

Physical Physical::Fit(const std::vector<Row>& rows, std::span<const int> use, const Options& options) {
  Physical physical;
  physical.common_ = FitWeights(rows, use, Start(rows, use), 0);
  if (!std::isfinite(options.pull)) return physical;
  std::map<std::string, std::vector<int>> groups;
  for (const int i : use) groups[rows[static_cast<size_t>(i)].group].push_back(i);
  if (groups.size() < 2) return physical;
  for (const auto& [group, members] : groups) {
    physical.groups_[group] = FitWeights(rows, members, physical.common_, options.pull);
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
  // Terms that the fit gave no weight: the common model, and where that is silent too, a sum of the terms.
  const double common = Dot(row.terms, common_);
  return common > 0 ? common : std::max(1e-9, Dot(row.terms, std::vector<double>(row.terms.size(), 1.0)));
}

std::vector<double> Physical::Shares(const Row& row) const {
  const std::vector<double>& weights = WeightsOf(row);
  std::vector<double> shares(weights.size(), 0.0);
  const double time = Dot(row.terms, weights);
  for (size_t k = 0; k < shares.size() && time > 0; ++k) shares[k] = weights[k] * row.terms[k] / time;
  return shares;
}

Json Physical::ToJson() const {
  Json groups = Json::object();
  for (const auto& [group, weights] : groups_) groups[EscapeBytes(group)] = weights;
  return {{"common", common_}, {"groups", std::move(groups)}};
}

Result<Physical> Physical::FromJson(const Json& json) {
  Physical physical;
  const auto numbers = [](const Json& list, std::vector<double>& to) {
    if (!list.is_array()) return false;
    for (const Json& item : list) {
      if (!item.is_number()) return false;
      to.push_back(item.get<double>());
    }
    return true;
  };
  const auto corrupt = [] { return Fail(ErrorCode::kCorrupt, "the physical model is not whole"); };
  if (!json.is_object() || !json.contains("common") || !numbers(json["common"], physical.common_) ||
      !json.contains("groups") || !json["groups"].is_object()) {
    return corrupt();
  }
  for (const auto& [group, weights] : json["groups"].items()) {
    auto& to = physical.groups_[TRY(UnescapeBytes(group))];
    if (!numbers(weights, to) || to.size() != physical.common_.size()) return corrupt();
  }
  return physical;
}

}  // namespace weir::predict
