// One way of predicting a time: a physical model, and what corrects it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/seed.h"
#include "predict/dataset.h"
#include "predict/linear.h"
#include "predict/neighbours.h"
#include "predict/physical.h"
#include "predict/trees.h"

namespace weir::predict {

// Rows, and the same as coordinates. A value that all fits share and none changes.
struct Data {
  Spec spec;
  Encoder encoder;
  std::vector<Row> rows;
  std::vector<std::vector<float>> numbers;  // of rows, by the encoder
  std::vector<std::vector<int>> codes;

  static Data Make(Spec spec, std::vector<Row> rows);
};

// What a row looks like to an estimator; borrows the three.
struct View {
  const Row& row;
  std::span<const float> numbers;
  std::span<const int> codes;
};

// A candidate: everything that is fixed before the rows are seen.
struct Recipe {
  std::string name;
  enum class Base { kPhysical, kLinear };
  Base base = Base::kPhysical;
  Physical::Options physical;
  LinearFit::Options linear;
  bool trees = false,
       neighbours = false;    // with both, trees correct what neighbours leave, and see what they say
  bool sees_hardware = true;  // trees: columns of hardware and machine, and terms by themselves
  Trees::Options tree;
  std::optional<Likeness> likeness;  // neighbours; tuned for the question
  int count = 64;                    // neighbours looked at
  // Corrections beyond the range of the rows of the fit are those at its edge; only the base goes on.
  bool carried = false;
};

// A Recipe fitted to rows. A value; any number of threads may ask it.
class Estimator {
 public:
  // Fits rows `use`, every one with a time. Errors are the library's.
  static Result<Estimator> Fit(const Data& data, std::span<const int> use, const Recipe& recipe, Seed seed);

  double LogTime(const View& view) const;  // of ms
  const Physical* physical() const { return physical_ ? &*physical_ : nullptr; }
  const LinearFit* linear() const { return linear_ ? &*linear_ : nullptr; }
  const Recipe& recipe() const { return recipe_; }

  // Neighbours keep row numbers of the predictor's data, not the rows.
  Json ToJson() const;
  static Result<Estimator> FromJson(const Json& json, const Data& data);

 private:
  double BaseLogTime(const Row& row) const;
  void ChooseTreeColumns(const Data& data);
  Status FitTrees(const Data& data, std::span<const int> use, std::span<const double> left, Seed seed);
  // `guess` is the neighbours', where there are.
  std::vector<float> TreeInput(const View& view, std::optional<double> guess) const;
  static Points MakePoints(const Data& data, std::span<const int> use);
  void LearnRange(const Data& data, std::span<const int> use);
  std::vector<float> WithinRange(std::span<const float> numbers) const;

  Recipe recipe_;
  std::optional<Physical> physical_;
  std::optional<LinearFit> linear_;
  std::optional<Trees> trees_;
  std::optional<Neighbours> neighbours_;
  // Columns of the trees: numbers and one-hot levels of categories.
  std::vector<int> tree_numbers_;
  std::vector<std::pair<int, int>> tree_levels_;
  // Of the numbers in the rows of the fit, where Recipe::carried.
  std::vector<float> least_, greatest_;
};

// What the neighbours would correct: log(time) less the physical model's, over all rows.
std::vector<double> Residuals(const Data& data, const Physical::Options& options);

}  // namespace weir::predict
