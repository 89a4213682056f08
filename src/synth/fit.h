// The last layer of a made network, fitted to features with known labels.
#pragma once

#include <span>
#include <vector>

#include "base/error.h"
#include "stats/least_squares.h"

namespace weir::synth {

struct Head {
  std::vector<float> weights;    // [outputs, features], row-major
  std::vector<float> bias;       // [outputs]
  double left_out_accuracy = 0;  // share of the rows that a fit without the row places rightly
};

struct HeadSpec {
  int classes = 2;  // labels run from 0 to classes - 1
  int outputs = 2;  // at least `classes`; those above never win: no weights and a low bias
};

// Ridge regression of one-hot labels on standardised features, the standardisation folded into weights and
// bias; then all scores are stretched so that their softmax is as sure of rows left out as it is right about
// them (least log loss: temperature scaling, Guo et al. 2017). kInvalidArgument as FitRidge, and for a label
// outside the classes.
Result<Head> FitHead(const stats::Matrix& features, std::span<const int> labels, const HeadSpec& spec);

}  // namespace weir::synth
