#include "synth/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weir::synth {
namespace {

using stats::Matrix;

// Penalty of the ridge to rows x columns of standardised features. Fresh pictures are placed best between
// 3e-5 and 3e-4 by networks of 256 to 2048 features fitted to 5 to 20 pictures a class; the optimum is flat.
constexpr double kPenaltyPerElement = 1e-4;
// Under the lowest score of any row, in logits: a thousand unused outputs together stay under 5 % of the
// least class.
constexpr double kUnusedMargin = 10;
// Share of labels taken for wrong when the scores are stretched: without it rows that are all right would
// stretch them for ever.
constexpr double kDoubt = 0.01;

struct Standard {
  std::vector<double> mean;
  std::vector<double> factor;  // 1 / standard deviation; 0 for a feature that does not vary
};

Standard MeasureColumns(const Matrix& x) {
  const auto rows = static_cast<double>(x.rows);
  Standard standard{std::vector<double>(x.columns, 0.0), std::vector<double>(x.columns, 0.0)};
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) standard.mean[c] += x.at(r, c) / rows;
  }
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) {
      const double off = x.at(r, c) - standard.mean[c];
      standard.factor[c] += off * off / rows;  // the variance, for now
    }
  }
  const double largest = std::ranges::max(standard.factor);
  for (double& value : standard.factor) value = value > 1e-12 * largest ? 1 / std::sqrt(value) : 0;
  return standard;
}

Matrix Standardised(const Matrix& x, const Standard& standard) {
  Matrix out = x;
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c)
      out.at(r, c) = (x.at(r, c) - standard.mean[c]) * standard.factor[c];
  }
  return out;
}

// Returns the loss of the softmax of `row` times `stretch` against a label believed by all but kDoubt.
double LogLoss(std::span<const double> row, int label, double stretch) {
  const double top = std::ranges::max(row);
  const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
  double sum = 0;
  for (const double score : row) sum += std::exp(stretch * (score - top));
  return std::log(sum) - stretch * ((1 - kDoubt) * row[label] + kDoubt * mean - top);
}

std::span<const double> Row(const Matrix& m, int64_t row) {
  return {m.values.data() + row * m.columns, static_cast<size_t>(m.columns)};
}

// The stretch with the least log loss, from a grid of steps of 19 %.
double BestStretch(const Matrix& scores, std::span<const int> labels) {
  double best = 1, least = INFINITY;
  for (int step = 0; step <= 28; ++step) {
    const double stretch = std::exp2(step / 4.0);
    double loss = 0;
    for (int64_t r = 0; r < scores.rows; ++r) loss += LogLoss(Row(scores, r), labels[r], stretch);
    if (loss < least) {
      least = loss;
      best = stretch;
    }
  }
  return best;
}

double ShareRight(const Matrix& scores, std::span<const int> labels) {
  int64_t right = 0;
  for (int64_t r = 0; r < scores.rows; ++r) {
    const auto row = Row(scores, r);
    right += std::ranges::max_element(row) - row.begin() == labels[r];
  }
  return static_cast<double>(right) / static_cast<double>(scores.rows);
}

}  // namespace

Result<Head> FitHead(const Matrix& features, std::span<const int> labels, const HeadSpec& spec) {
  CHECK(spec.outputs >= spec.classes && std::ssize(labels) == features.rows);
  Matrix targets = Matrix::Zero(features.rows, spec.classes);
  for (int64_t r = 0; r < features.rows; ++r) {
    if (labels[r] < 0 || labels[r] >= spec.classes) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("label {} is not one of {} classes", labels[r], spec.classes));
    }
    targets.at(r, labels[r]) = 1;
  }
  const Standard standard = MeasureColumns(features);
  const double penalty = kPenaltyPerElement * static_cast<double>(features.rows * features.columns);
  const stats::RidgeFit fit = TRY(stats::FitRidge(Standardised(features, standard), targets, penalty));
  const double stretch = BestStretch(fit.left_out, labels);

  Head head{.weights = std::vector<float>(static_cast<size_t>(spec.outputs) * features.columns, 0.0F),
            .bias = std::vector<float>(spec.outputs),
            .left_out_accuracy = ShareRight(fit.left_out, labels)};
  const double low = stretch * std::ranges::min(fit.left_out.values) - kUnusedMargin;
  std::ranges::fill(head.bias, static_cast<float>(low));
  for (int k = 0; k < spec.classes; ++k) {
    double bias = fit.intercepts[k];
    for (int64_t c = 0; c < features.columns; ++c) {
      const double weight = fit.coefficients.at(c, k) * standard.factor[c];
      bias -= weight * standard.mean[c];
      head.weights[k * features.columns + c] = static_cast<float>(stretch * weight);
    }
    head.bias[k] = static_cast<float>(stretch * bias);
  }
  return head;
}

}  // namespace weir::synth
