#include "stats/anova.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <Eigen/Core>
#include <Eigen/QR>

#include "stats/distributions.h"

namespace weir::stats {
namespace {

constexpr double kRankTolerance = 1e-10;
constexpr double kOutlierLevel = 0.05;

using Dense = Eigen::MatrixXd;
using Term = std::vector<size_t>;  // sorted indices of factors

Status CheckInputs(std::span<const double> y, std::span<const FactorLevels> factors,
                   std::span<const std::pair<size_t, size_t>> interactions) {
  for (const double value : y) {
    if (!std::isfinite(value))
      return Fail(ErrorCode::kInvalidArgument, "the analysis of variance needs finite numbers");
  }
  for (const FactorLevels& levels : factors) {
    if (levels.size() != y.size())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("the analysis of variance has {} observations and {} levels of a factor",
                              y.size(), levels.size()));
    if (std::ranges::any_of(levels, [](int level) { return level < 0; }))
      return Fail(ErrorCode::kInvalidArgument, "levels of a factor are counted from 0");
  }
  for (const auto& [a, b] : interactions) {
    if (a == b || a >= factors.size() || b >= factors.size())
      return Fail(ErrorCode::kInvalidArgument, "an interaction names two different factors by their index");
  }
  return {};
}

// Returns a column for each level of the factor but the first: 1 where the observation has it.
Dense Indicators(const FactorLevels& levels) {
  const int highest = levels.empty() ? 0 : *std::ranges::max_element(levels);
  Dense columns = Dense::Zero(std::ssize(levels), highest);
  for (size_t i = 0; i < levels.size(); ++i) {
    if (levels[i] > 0) columns(static_cast<Eigen::Index>(i), levels[i] - 1) = 1;
  }
  return columns;
}

Dense ColumnsOf(const Term& term, std::span<const FactorLevels> factors) {
  Dense columns = Indicators(factors[term[0]]);
  for (size_t k = 1; k < term.size(); ++k) {
    const Dense other = Indicators(factors[term[k]]);
    Dense products(columns.rows(), columns.cols() * other.cols());
    for (Eigen::Index a = 0; a < columns.cols(); ++a) {
      for (Eigen::Index b = 0; b < other.cols(); ++b)
        products.col(a * other.cols() + b) = columns.col(a).cwiseProduct(other.col(b));
    }
    columns = std::move(products);
  }
  return columns;
}

// A model's fit: its rank, and what it leaves.
struct Fit {
  int64_t rank = 0;
  double sum_of_squares = 0;
  Eigen::VectorXd residuals;
  Eigen::VectorXd leverage;
};

// The model's columns, the intercept's first.
Dense MakeColumns(Eigen::Index rows, const std::vector<Term>& terms, std::span<const FactorLevels> factors) {
  std::vector<Dense> parts{Dense::Ones(rows, 1)};
  Eigen::Index width = 1;
  for (const Term& term : terms) {
    parts.push_back(ColumnsOf(term, factors));
    width += parts.back().cols();
  }
  Dense x(rows, width);
  Eigen::Index at = 0;
  for (const Dense& part : parts) {
    x.middleCols(at, part.cols()) = part;
    at += part.cols();
  }
  return x;
}

Fit FitTerms(const Eigen::VectorXd& y, const std::vector<Term>& terms,
             std::span<const FactorLevels> factors) {
  const Dense x = MakeColumns(y.size(), terms, factors);
  Eigen::ColPivHouseholderQR<Dense> qr(x.rows(), x.cols());
  qr.setThreshold(kRankTolerance);
  qr.compute(x);
  // The first `rank` columns of Q span the model whichever columns of x are redundant.
  const Dense q = qr.householderQ() * Dense::Identity(y.size(), qr.rank());
  Fit fit{.rank = qr.rank(), .residuals = y - q * (q.transpose() * y)};
  fit.sum_of_squares = fit.residuals.squaredNorm();
  fit.leverage = q.rowwise().squaredNorm();
  return fit;
}

bool Contains(const Term& outer, const Term& inner) { return std::ranges::includes(outer, inner); }

std::vector<Term> MakeTerms(size_t factors, std::span<const std::pair<size_t, size_t>> interactions) {
  std::vector<Term> terms;
  for (size_t i = 0; i < factors; ++i) terms.push_back({i});
  for (const auto& [a, b] : interactions) terms.push_back({std::min(a, b), std::max(a, b)});
  return terms;
}

int64_t RankOf(const std::vector<Term>& terms, std::span<const FactorLevels> factors) {
  Eigen::ColPivHouseholderQR<Dense> qr(MakeColumns(std::ssize(factors[0]), terms, factors));
  qr.setThreshold(kRankTolerance);
  return qr.rank();
}

// The degrees of freedom that `term` adds to the others.
int64_t DegreesBeside(const Term& term, std::vector<Term> others, std::span<const FactorLevels> factors) {
  const int64_t without = RankOf(others, factors);
  others.push_back(term);
  return RankOf(others, factors) - without;
}

AnovaTerm TestTerm(const Term& term, const Eigen::VectorXd& y, const std::vector<Term>& all,
                   std::span<const FactorLevels> factors, const Fit& full) {
  std::vector<Term> without;
  for (const Term& other : all) {
    if (!Contains(other, term)) without.push_back(other);
  }
  std::vector<Term> with = without;
  with.push_back(term);
  const Fit less = FitTerms(y, without, factors), more = FitTerms(y, with, factors);
  const auto residual_degrees = static_cast<double>(y.size() - full.rank);
  AnovaTerm tested{.factors = term,
                   .degrees = more.rank - less.rank,
                   .sum_of_squares = std::max(0.0, less.sum_of_squares - more.sum_of_squares)};
  const double error = full.sum_of_squares / residual_degrees;
  if (tested.degrees < 1 || !(error > 0)) return tested;
  tested.f = tested.sum_of_squares / static_cast<double>(tested.degrees) / error;
  tested.p = FisherTail(static_cast<double>(tested.degrees), residual_degrees, tested.f);
  return tested;
}

std::vector<AnovaOutlier> FindOutliers(const Fit& fit) {
  const auto n = fit.residuals.size();
  const auto degrees = static_cast<double>(n - fit.rank - 1);
  std::vector<AnovaOutlier> outliers;
  if (degrees < 1) return outliers;
  for (Eigen::Index i = 0; i < n; ++i) {
    const double rest = 1 - fit.leverage[i];
    if (rest < 1e-9) continue;  // the model follows this observation exactly
    const double square = fit.residuals[i] * fit.residuals[i] / rest;
    const double variance = (fit.sum_of_squares - square) / degrees;
    if (!(variance > 0)) continue;
    const double t = fit.residuals[i] / std::sqrt(variance * rest);
    const double p = std::min(1.0, 2 * StudentTail(degrees, std::abs(t)) * static_cast<double>(n));
    if (p < kOutlierLevel) outliers.push_back({.observation = static_cast<size_t>(i), .t = t, .p = p});
  }
  std::ranges::stable_sort(outliers, {}, &AnovaOutlier::p);
  return outliers;
}

void CheckResiduals(const Fit& fit, Anova& anova) {
  const Eigen::ArrayXd r = fit.residuals.array();
  if (!(fit.sum_of_squares > 0) || r.size() < 3) return;
  const auto n = static_cast<double>(r.size());
  const Eigen::ArrayXd centred = r - r.mean();
  const double m2 = centred.square().mean();
  const double skew = centred.cube().mean() / std::pow(m2, 1.5);
  const double kurtosis = centred.square().square().mean() / (m2 * m2);
  const double statistic = n / 6 * (skew * skew + (kurtosis - 3) * (kurtosis - 3) / 4);
  anova.normality_p = std::exp(-statistic / 2);  // chi-squared with two degrees of freedom
  const Eigen::Index last = r.size() - 1;
  anova.durbin_watson = (r.tail(last) - r.head(last)).square().sum() / fit.sum_of_squares;
}

}  // namespace

Result<Anova> AnalyseVariance(std::span<const double> y, std::span<const FactorLevels> factors,
                              std::span<const std::pair<size_t, size_t>> interactions) {
  TRY_STATUS(CheckInputs(y, factors, interactions));
  const std::vector<Term> terms = MakeTerms(factors.size(), interactions);
  const Eigen::VectorXd values = Eigen::Map<const Eigen::VectorXd>(y.data(), std::ssize(y));
  const Fit full = FitTerms(values, terms, factors);
  if (full.rank >= std::ssize(y))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} observations leave nothing to judge a model with {} parameters by: ask for "
                            "more repeats",
                            y.size(), full.rank));
  Anova anova{.residual_degrees = std::ssize(y) - full.rank,
              .residual_sum_of_squares = full.sum_of_squares,
              .residuals = {full.residuals.data(), full.residuals.data() + full.residuals.size()}};
  for (const Term& term : terms) {
    const AnovaTerm tested = TestTerm(term, values, terms, factors, full);
    if (tested.degrees > 0) anova.terms.push_back(tested);
  }
  CheckResiduals(full, anova);
  anova.outliers = FindOutliers(full);
  return anova;
}

std::vector<AnovaAlias> FindAliases(std::span<const FactorLevels> factors,
                                    std::span<const std::pair<size_t, size_t>> interactions) {
  const std::vector<Term> terms = MakeTerms(factors.size(), interactions);
  std::vector<AnovaAlias> aliases;
  for (const Term& term : terms) {
    std::vector<Term> others, parts;
    std::ranges::copy_if(terms, std::back_inserter(others),
                         [&](const Term& one) { return !Contains(one, term); });
    std::ranges::copy_if(others, std::back_inserter(parts),
                         [&](const Term& one) { return Contains(term, one); });
    AnovaAlias alias{.factors = term,
                     .degrees = DegreesBeside(term, others, factors),
                     .own_degrees = DegreesBeside(term, parts, factors)};
    if (alias.degrees >= alias.own_degrees) continue;
    for (size_t factor = 0; factor < factors.size(); ++factor) {
      if (std::ranges::find(term, factor) != term.end()) continue;
      std::vector<Term> rest;
      std::ranges::copy_if(others, std::back_inserter(rest),
                           [&](const Term& one) { return std::ranges::find(one, factor) == one.end(); });
      if (DegreesBeside(term, rest, factors) > alias.degrees) alias.with.push_back(factor);
    }
    aliases.push_back(std::move(alias));
  }
  return aliases;
}

}  // namespace weir::stats
