// Linear regression with sequential forward selection (Lattuada, Gianniti, Ardagna and Zhang 2022, as in
// their a-MLLibrary).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/seed.h"
#include "predict/table/dataset.h"

namespace weir::predict {

// Time as a linear function of columns, their inverses, logarithms and products of two, with a ridge penalty.
// Features are added one at a time: of the thirty that correlate best with the residual, the one that lowers
// the mean absolute percentage error under k-fold most. The best set on the way is kept. Each group of the
// physical model has its own function, as has each network with groups of too few rows; one function of all
// rows serves the others. The target is the time itself, so large times decide; `relative` weighs each row by
// 1 / time instead. A value.
class LinearFit {
 public:
  struct Options {
    bool relative = false;
    int most_features = 12;
    int folds = 5;
    double penalty = 1e-4;  // of standardised coefficients, a row
  };
  static LinearFit Fit(const Spec& spec, const std::vector<Row>& rows, std::span<const int> use,
                       const Options& options, Seed seed);

  // Returns ms, at least a hundredth of the least time of the fit and at most a hundred times the greatest.
  double Time(const Row& row) const;
  // Returns "time = 1.2 + 3.4 * x * (1 / y) + ...", one line for each function.
  std::string Text(const Spec& spec) const;

  // Returns whether the spec has all columns.
  bool Fits(const Spec& spec) const;

 private:
  friend class LinearSelection;
  friend struct PredictorFile;
  // A factor of a feature: a number of the row, or 1 where a category has a level.
  enum class Form { kPlain, kInverse, kLog, kLevel };
  struct Factor {
    Form form = Form::kPlain;
    int column = 0;
    std::string level;
  };
  struct Feature {
    std::vector<Factor> factors;  // one or two
    double coefficient = 0;
  };
  struct Function {
    double intercept = 0;
    std::vector<Feature> features;
    double least = 0, greatest = 0;  // times of the fit
  };
  static double Evaluate(const Factor& factor, const Row& row);
  static double Evaluate(const Feature& feature, const Row& row);
  static std::string Text(const Spec& spec, const Factor& factor);

  Function all_;
  std::map<std::string, Function> groups_;  // and networks, which have no '|' at their end
};

}  // namespace weir::predict
