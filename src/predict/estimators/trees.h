// Boosted regression trees. XGBoost fits them; the evaluation here needs no library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::predict {

// An ensemble of trees over rows of numbers (NaN: unknown). A value. Evaluation takes at most a microsecond a
// tree and equals the library's to rounding.
class Trees {
 public:
  enum class Loss { kSquared, kAbsolute };
  struct Options {
    int rounds = 500;
    double rate = 0.05;
    int depth = 6;
    double child_weight = 2;  // rows a leaf has at least
    double row_share = 0.8, column_share = 0.5;
    double penalty = 1;  // of the squares of leaves
    Loss loss = Loss::kSquared;
    uint64_t seed = 1;
  };
  // Fits with one thread; the same input gives the same trees. x is row-major, `columns` to a row of y.
  // Returns kInvalidArgument if the shapes do not fit, kInternal with the library's message.
  static Result<Trees> Fit(std::span<const float> x, int columns, std::span<const float> y,
                           const Options& options);

  // REQUIRES: as many numbers as the fit had columns.
  double Predict(std::span<const float> x) const;
  int columns() const { return columns_; }

 private:
  friend struct PredictorFile;
  // A leaf has left < 0 and its value in `threshold`. The right child follows the left one.
  struct Node {
    int32_t left = -1;
    uint16_t column = 0;
    uint16_t unknown_goes_left = 0;
    float threshold = 0;
  };
  bool IsWhole() const;

  int columns_ = 0;
  double base_ = 0;
  std::vector<int32_t> roots_;  // of the trees, in nodes_
  std::vector<Node> nodes_;
};

}  // namespace weir::predict
