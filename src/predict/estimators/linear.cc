#include "predict/estimators/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/contains.h"
#include "base/shuffle.h"
#include "stats/cholesky.h"

namespace weir::predict {

// Candidates, their scores, and the selection for one set of rows.
class LinearSelection {
 public:
  using Feature = LinearFit::Feature;
  using Factor = LinearFit::Factor;
  using Form = LinearFit::Form;

  LinearSelection(const Spec& spec, const std::vector<Row>& rows, std::span<const int> use,
                  const LinearFit::Options& options, Seed seed)
      : spec_(spec), options_(options), n_(use.size()) {
    Random random = seed.MakeRandom();
    for (const int i : use) {
      rows_.push_back(&rows[static_cast<size_t>(i)]);
      time_.push_back(*rows_.back()->time);
      weight_.push_back(options.relative ? 1 / (time_.back() * time_.back()) : 1);
    }
    for (size_t i = 0; i < n_; ++i) fold_.push_back(static_cast<int>(i) % options.folds);
    Shuffle(fold_, random);
    MakeCandidates();
  }

  // Adds features up to the limit, as a-MLLibrary does, and keeps the best set on the way.
  LinearFit::Function Select() {
    std::vector<size_t> chosen, best;
    double least = Score(chosen);
    const auto most = std::min<size_t>(static_cast<size_t>(options_.most_features), n_ / 6);
    while (chosen.size() < most) {
      const auto [score, next] = BestNext(chosen);
      if (!next) break;
      chosen.push_back(*next);
      if (score >= least) continue;
      least = score;
      best = chosen;
    }
    return Final(best);
  }

 private:
  std::pair<double, std::optional<size_t>> BestNext(std::vector<size_t> chosen) const {
    double least = std::numeric_limits<double>::infinity();
    std::optional<size_t> next;
    for (const size_t c : MostPromising(chosen)) {
      chosen.push_back(c);
      const double score = Score(chosen);
      chosen.pop_back();
      if (score >= least) continue;
      least = score;
      next = c;
    }
    return {least, next};
  }

  // Returns the candidates that correlate best with the residual, in order of their index. Trying all of
  // thousands under k-fold would choose nearly the same.
  std::vector<size_t> MostPromising(const std::vector<size_t>& chosen) const {
    constexpr size_t kMost = 30;
    const std::vector<double> w = Solve(chosen, -1);
    std::vector<double> left(n_);
    for (size_t i = 0; i < n_; ++i) {
      left[i] = time_[i] - w[0];
      for (size_t c = 0; c < chosen.size(); ++c) left[i] -= w[c + 1] * values_[chosen[c]][i];
      left[i] *= weight_[i];
    }
    std::vector<std::pair<double, size_t>> ranked;
    for (size_t c = 0; c < features_.size(); ++c) {
      if (Contains(chosen, c)) continue;
      double along = 0, squares = 0;
      for (size_t i = 0; i < n_; ++i) {
        along += left[i] * values_[c][i];
        squares += weight_[i] * values_[c][i] * values_[c][i];
      }
      ranked.emplace_back(-along * along / std::max(squares, 1e-300), c);
    }
    const auto some = static_cast<std::ptrdiff_t>(std::min(kMost, ranked.size()));
    std::ranges::partial_sort(ranked, ranked.begin() + some);
    std::vector<size_t> promising;
    for (const auto& [score, c] : std::span(ranked).first(static_cast<size_t>(some))) promising.push_back(c);
    std::ranges::sort(promising);
    return promising;
  }

  void MakeCandidates() {
    std::vector<Factor> factors;
    for (size_t j = 0; j < spec_.numbers.size(); ++j) {
      const bool known =
          std::ranges::all_of(rows_, [&](const Row* row) { return std::isfinite(row->numbers[j]); });
      if (!known) continue;
      const bool positive = std::ranges::all_of(rows_, [&](const Row* row) { return row->numbers[j] > 0; });
      factors.push_back({.form = Form::kPlain, .column = static_cast<int>(j)});
      if (positive) factors.push_back({.form = Form::kInverse, .column = static_cast<int>(j)});
      if (positive) Add({{.form = Form::kLog, .column = static_cast<int>(j)}});
    }
    for (size_t j = 0; j < spec_.categories.size(); ++j) {
      // The name of a machine says nothing about another machine.
      if (spec_.categories[j].side == Side::kMachine || spec_.categories[j].side == Side::kHardware) continue;
      std::set<std::string> levels;
      for (const Row* row : rows_) levels.insert(row->categories[j]);
      if (levels.size() > 12) continue;
      for (const std::string& level : levels) {
        factors.push_back({.form = Form::kLevel, .column = static_cast<int>(j), .level = level});
      }
    }
    for (const Factor& factor : factors) Add({factor});
    for (size_t a = 0; a < factors.size(); ++a) {
      for (size_t b = a + 1; b < factors.size(); ++b) {
        const bool same = factors[a].column == factors[b].column &&
                          (factors[a].form == Form::kLevel) == (factors[b].form == Form::kLevel);
        if (!same) Add({factors[a], factors[b]});
      }
    }
  }

  // Standardises the feature and adds it, unless it is constant or a copy of another.
  void Add(std::vector<Factor> factors) {
    const Feature feature{.factors = std::move(factors)};
    std::vector<double> values;
    double mean = 0, squares = 0;
    for (const Row* row : rows_) {
      values.push_back(LinearFit::Evaluate(feature, *row));
      mean += values.back() / static_cast<double>(n_);
    }
    for (double& value : values) {
      value -= mean;
      squares += value * value;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(n_));
    if (!std::isfinite(deviation) || deviation <= 1e-9 * std::abs(mean) || deviation == 0) return;
    for (double& value : values) value /= deviation;
    std::vector<int64_t> print;
    for (const double value : values) print.push_back(std::llround(value * 1e6));
    if (!prints_.insert(std::move(print)).second) return;
    features_.push_back(feature);
    means_.push_back(mean);
    deviations_.push_back(deviation);
    values_.push_back(std::move(values));
  }

  // Returns coefficients on the rows outside `fold` (-1: on all), the intercept first. Normal equations, with
  // ridge on all but the intercept.
  std::vector<double> Solve(const std::vector<size_t>& chosen, int fold) const {
    const size_t k = chosen.size() + 1;
    std::vector<double> a(k * k, 0.0), b(k, 0.0), x(k, 1.0);
    for (size_t i = 0; i < n_; ++i) {
      if (fold_[i] == fold) continue;
      for (size_t c = 1; c < k; ++c) x[c] = values_[chosen[c - 1]][i];
      for (size_t c = 0; c < k; ++c) {
        b[c] += weight_[i] * x[c] * time_[i];
        for (size_t d = 0; d <= c; ++d) a[c * k + d] += weight_[i] * x[c] * x[d];
      }
    }
    for (size_t c = 1; c < k; ++c) a[c * k + c] += options_.penalty * a[0];
    a[0] *= 1 + 1e-12;
    stats::Decompose(a, k, 1e-300);
    stats::SolveLower(a, b);
    stats::SolveUpper(a, b);
    return b;
  }

  // Returns the mean absolute percentage error under k-fold.
  double Score(const std::vector<size_t>& chosen) const {
    double sum = 0;
    for (int fold = 0; fold < options_.folds; ++fold) {
      const std::vector<double> w = Solve(chosen, fold);
      for (size_t i = 0; i < n_; ++i) {
        if (fold_[i] != fold) continue;
        double predicted = w[0];
        for (size_t c = 0; c < chosen.size(); ++c) predicted += w[c + 1] * values_[chosen[c]][i];
        sum += std::abs(predicted / time_[i] - 1);
      }
    }
    return std::isfinite(sum) ? sum / static_cast<double>(n_) : std::numeric_limits<double>::infinity();
  }

  LinearFit::Function Final(const std::vector<size_t>& chosen) const {
    const std::vector<double> w = Solve(chosen, -1);
    const auto [least, greatest] = std::ranges::minmax(time_);
    LinearFit::Function function{.intercept = w[0], .least = least, .greatest = greatest};
    for (size_t c = 0; c < chosen.size(); ++c) {
      Feature feature = features_[chosen[c]];
      feature.coefficient = w[c + 1] / deviations_[chosen[c]];
      function.intercept -= feature.coefficient * means_[chosen[c]];
      function.features.push_back(std::move(feature));
    }
    return function;
  }

  const Spec& spec_;
  const LinearFit::Options options_;
  const size_t n_;
  std::vector<const Row*> rows_;
  std::vector<double> time_, weight_;
  std::vector<int> fold_;
  std::vector<Feature> features_;
  std::vector<double> means_, deviations_;
  std::vector<std::vector<double>> values_;  // of features, standardised
  std::set<std::vector<int64_t>> prints_;
};

double LinearFit::Evaluate(const Factor& factor, const Row& row) {
  const auto column = static_cast<size_t>(factor.column);
  if (column >= (factor.form == Form::kLevel ? row.categories.size() : row.numbers.size())) return NAN;
  if (factor.form == Form::kLevel) return row.categories[column] == factor.level ? 1 : 0;
  const double x = row.numbers[column];
  if (factor.form == Form::kInverse) return 1 / x;
  return factor.form == Form::kLog ? std::log(x) : x;
}

double LinearFit::Evaluate(const Feature& feature, const Row& row) {
  double product = 1;
  for (const Factor& factor : feature.factors) product *= Evaluate(factor, row);
  return product;
}

LinearFit LinearFit::Fit(const Spec& spec, const std::vector<Row>& rows, std::span<const int> use,
                         const Options& options, Seed seed) {
  constexpr size_t kFewest = 24, kMost = 400;
  // Rows at even distances are enough to choose features.
  const auto some = [](std::span<const int> of) {
    std::vector<int> part;
    for (size_t i = 0, step = of.size() / kMost + 1; i < of.size(); i += step) part.push_back(of[i]);
    return part;
  };
  LinearFit fit;
  std::map<std::string, std::vector<int>> groups, networks;
  for (const int i : use) groups[rows[static_cast<size_t>(i)].group].push_back(i);
  for (const auto& [group, members] : groups) {
    if (members.size() >= kFewest) continue;
    for (const int i : members) networks[rows[static_cast<size_t>(i)].network];
  }
  for (const int i : use) {
    const auto network = networks.find(rows[static_cast<size_t>(i)].network);
    if (network != networks.end()) network->second.push_back(i);
  }
  groups.merge(networks);
  for (const auto& [key, members] : groups) {
    if (members.size() < kFewest) continue;
    fit.groups_[key] = LinearSelection(spec, rows, some(members), options, seed.Stream(key)).Select();
  }
  Options few = options;
  few.most_features = 6;
  fit.all_ = LinearSelection(spec, rows, some(use), few, seed).Select();
  return fit;
}

double LinearFit::Time(const Row& row) const {
  auto found = groups_.find(row.group);
  if (found == groups_.end()) found = groups_.find(row.network);
  const Function& function = found == groups_.end() ? all_ : found->second;
  double time = function.intercept;
  for (const Feature& feature : function.features) time += feature.coefficient * Evaluate(feature, row);
  if (!std::isfinite(time)) return std::sqrt(function.least * function.greatest);
  return std::clamp(time, function.least / 100, function.greatest * 100);
}

std::string LinearFit::Text(const Spec& spec, const Factor& factor) {
  const auto column = static_cast<size_t>(factor.column);
  if (factor.form == Form::kLevel)
    return fmt::format("({} == '{}')", spec.categories[column].column, factor.level);
  const std::string& name = spec.numbers[column].named.name;
  if (factor.form == Form::kPlain) return name;
  return fmt::format(fmt::runtime(factor.form == Form::kInverse ? "(1 / {})" : "log({})"), name);
}

std::string LinearFit::Text(const Spec& spec) const {
  const auto line = [&](const std::string& name, const Function& function) {
    std::string text = fmt::format("  {}: time_ms = {:.6g}", name, function.intercept);
    for (const auto& [factors, coefficient] : function.features) {
      text += fmt::format(" {} {:.6g}", coefficient < 0 ? '-' : '+', std::abs(coefficient));
      for (const Factor& factor : factors) text += " * " + Text(spec, factor);
    }
    return text + "\n";
  };
  std::string text;
  for (const auto& [key, function] : groups_) text += line(key, function);
  return text + line("any other", all_);
}

bool LinearFit::Fits(const Spec& spec) const {
  const auto has = [&spec](const Factor& factor) {
    const auto columns = factor.form == Form::kLevel ? std::ssize(spec.categories) : std::ssize(spec.numbers);
    return factor.form <= Form::kLevel && factor.column >= 0 && factor.column < columns;
  };
  const auto fits = [&has](const Function& function) {
    return std::ranges::all_of(function.features,
                               [&has](const Feature& one) { return std::ranges::all_of(one.factors, has); });
  };
  return fits(all_) &&
         std::ranges::all_of(groups_, [&fits](const auto& group) { return fits(group.second); });
}

}  // namespace weir::predict
