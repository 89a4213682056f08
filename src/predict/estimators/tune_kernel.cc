#include "predict/estimators/tune_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <numeric>
#include <utility>

#include "base/parallel.h"
#include "base/shuffle.h"

namespace weir::predict {
namespace {

// A row to predict, and the points that it must not use.
struct Sample {
  int row = 0;
  const std::vector<char>* leave_out = nullptr;
};

class Search {
 public:
  Search(const Points& all, const std::vector<double>& values, const std::vector<Fold>& folds,
         const TuneOptions& options)
      : all_points_(all), values_(values), options_(options) {
    Random random = options.seed.Stream("tune").MakeRandom();
    ChoosePoints(random);
    ChooseSamples(folds, random);
  }

  Kernel Run() {
    Kernel best = Kernel::Even(points_);
    best_ = Score(best);
    Sides(best);
    Dimensions(best);
    Sides(best);
    return best;
  }

 private:
  void ChoosePoints(Random& random) {
    std::vector<int> all(values_.size());
    std::iota(all.begin(), all.end(), 0);
    Shuffle(all, random);
    all.resize(std::min<size_t>(all.size(), static_cast<size_t>(options_.points)));
    points_ = all_points_.Pick(all);
    for (const int i : all) point_values_.push_back(values_[static_cast<size_t>(i)]);
    chosen_ = std::move(all);
  }

  void ChooseSamples(const std::vector<Fold>& folds, Random& random) {
    for (const Fold& fold : folds) {
      std::vector<char> test(values_.size(), 0);
      for (const int i : fold.test) test[static_cast<size_t>(i)] = 1;
      std::vector<char>& mask = masks_.emplace_back();
      for (const int i : chosen_) mask.push_back(test[static_cast<size_t>(i)]);
    }
    const auto each = static_cast<size_t>(options_.samples) / folds.size() + 1;
    for (size_t f = 0; f < folds.size(); ++f) {
      std::vector<int> test = folds[f].test;
      for (size_t i = 0; i < std::min(each, test.size()); ++i) {
        const auto other = static_cast<size_t>(random.Integer(static_cast<int64_t>(i), std::ssize(test) - 1));
        std::swap(test[i], test[other]);
        samples_.push_back({test[i], &masks_[f]});
      }
    }
  }

  double Score(const Kernel& kernel) const {
    const Neighbours neighbours(points_, point_values_, kernel, options_.count);
    std::vector<double> errors(samples_.size());
    ParallelFor("predict", std::ssize(samples_), options_.threads, [&](int64_t i) {
      const Sample& sample = samples_[static_cast<size_t>(i)];
      const auto row = static_cast<size_t>(sample.row);
      const double guess =
          neighbours.At(all_points_.NumbersOf(sample.row), all_points_.CodesOf(sample.row), *sample.leave_out)
              .mean;
      errors[static_cast<size_t>(i)] = std::min(1.5, std::abs(values_[row] - guess));
    });
    return std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  }

  // Takes what `change` makes of `best` if that is better by a thousandth.
  bool Try(Kernel& best, const std::function<void(Kernel&)>& change) {
    Kernel other = best;
    change(other);
    const double score = Score(other);
    if (score >= best_ * 0.999) return false;
    best_ = score;
    best = std::move(other);
    return true;
  }

  // Scales up as far as it helps, or down.
  void Walk(Kernel& best, double factor, const std::function<void(Kernel&, double)>& scale) {
    for (const double step : {factor, 1 / factor}) {
      bool moved = false;
      for (int i = 0; i < 3 && Try(best, [&](Kernel& l) { scale(l, step); }); ++i) moved = true;
      if (moved) return;
    }
  }

  void Sides(Kernel& best) {
    Walk(best, 3, [](Kernel& l, double step) { l.noise *= step; });
    for (const Side side : {Side::kHardware, Side::kNetwork, Side::kRun, Side::kMachine}) {
      Walk(best, 2, [&](Kernel& l, double step) {
        for (size_t j = 0; j < l.number_weights.size(); ++j) {
          if (points_.number_sides[j] == side) l.number_weights[j] *= step;
        }
        for (size_t j = 0; j < l.category_weights.size(); ++j) {
          if (points_.category_sides[j] == side) l.category_weights[j] *= step;
        }
      });
    }
    Walk(best, 3, [](Kernel& l, double step) { l.network *= step; });
    Walk(best, 3, [](Kernel& l, double step) { l.hardware *= step; });
    Walk(best, 3, [](Kernel& l, double step) { l.run *= step; });
  }

  void Dimensions(Kernel& best) {
    for (size_t j = 0; j < best.category_weights.size(); ++j) {
      Walk(best, 4, [j](Kernel& l, double step) { l.category_weights[j] *= step; });
    }
    for (size_t j = 0; j < best.number_weights.size(); ++j) {
      if (IsConstant(j)) continue;  // a term without weight
      Walk(best, 4, [j](Kernel& l, double step) { l.number_weights[j] *= step; });
    }
  }

  bool IsConstant(size_t number) const {
    for (int64_t i = 0; i < points_.size(); ++i) {
      if (points_.NumbersOf(i)[number] != points_.NumbersOf(0)[number]) return false;
    }
    return true;
  }

  const Points& all_points_;
  const std::vector<double>& values_;
  const TuneOptions options_;
  Points points_;
  std::vector<double> point_values_;
  std::vector<int> chosen_;
  std::deque<std::vector<char>> masks_;
  std::vector<Sample> samples_;
  double best_ = 0;
};

}  // namespace

Kernel TuneKernel(const Points& points, const std::vector<double>& values, const std::vector<Fold>& folds,
                  const TuneOptions& options) {
  return Search(points, values, folds, options).Run();
}

}  // namespace weir::predict
