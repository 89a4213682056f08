// One way to predict a time: a physical model, and corrections of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/seed.h"
#include "predict/estimators/linear.h"
#include "predict/estimators/neighbours.h"
#include "predict/estimators/physical.h"
#include "predict/estimators/trees.h"
#include "predict/features/encoder.h"
#include "predict/table/dataset.h"

namespace weir::predict {

// A row as estimators see it. Borrows all three.
struct View {
  const Row& row;
  std::span<const float> numbers;
  std::span<const int> codes;
};

// Rows and their coordinates. Immutable; all fits share it. A predictor from a file has the points alone.
struct Data {
  Spec spec;
  Encoder encoder;
  std::vector<Row> rows;
  Points points;  // of the rows, by the encoder

  static Data Make(Spec spec, std::vector<Row> rows);
  View ViewOf(int row) const {
    return {rows[static_cast<size_t>(row)], points.NumbersOf(row), points.CodesOf(row)};
  }
};

// Everything about a candidate that is fixed before the rows are seen.
struct Recipe {
  std::string name;
  enum class Base { kPhysical, kLinear };
  Base base = Base::kPhysical;
  Physical::Options physical;
  LinearFit::Options linear;
  bool trees = false, neighbours = false;  // at most one
  Trees::Options tree;
  std::optional<Kernel> kernel;  // of neighbours, tuned for the split
  int count = 64;                // neighbours for one answer
};

// A Recipe fitted to rows. A value; thread-safe once fitted.
class Estimator {
 public:
  // Fits rows `use`, each with a time. Returns the error of the library of trees.
  static Result<Estimator> Fit(const Data& data, std::span<const int> use, const Recipe& recipe, Seed seed);

  double LogTime(const View& view) const;  // of ms
  const Physical* physical() const { return physical_ ? &*physical_ : nullptr; }
  const LinearFit* linear() const { return linear_ ? &*linear_ : nullptr; }
  const Recipe& recipe() const { return recipe_; }

  // Checks what a file gave against `data`, whose rows the neighbours are. Returns false if it does not fit.
  bool Join(const Data& data);

 private:
  friend struct PredictorFile;
  double BaseLogTime(const Row& row) const;
  void ChooseTreeColumns(const Data& data);
  Status FitTrees(const Data& data, std::span<const int> use, std::span<const double> left, Seed seed);
  std::vector<float> TreeInput(const View& view) const;

  Recipe recipe_;
  std::optional<Physical> physical_;
  std::optional<LinearFit> linear_;
  std::optional<Trees> trees_;
  std::optional<Neighbours> neighbours_;
  // Columns of the trees: numbers and one-hot levels of categories.
  std::vector<int> tree_numbers_;
  std::vector<std::pair<int, int>> tree_levels_;
};

// Returns log(time) less the logarithm of the physical model's time, for every row.
std::vector<double> Residuals(const Data& data, const Physical::Options& options);

}  // namespace weir::predict
