// One way to predict a time: a physical model, and a correction by its neighbours.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/seed.h"
#include "predict/estimators/linear.h"
#include "predict/estimators/neighbours.h"
#include "predict/estimators/physical.h"
#include "predict/features/encoder.h"
#include "predict/table/dataset.h"

namespace weir::predict {

// A row as estimators see it. Borrows all three.
struct View {
  const Row& row;
  std::span<const float> numbers;
  std::span<const int> codes;
};

// Rows and their coordinates. Immutable; all fits share it. A predictor from a file has the points and the
// terms alone.
struct Data {
  Spec spec;
  Encoder encoder;
  std::vector<Row> rows;
  Points points;              // of the rows, by the encoder
  std::vector<double> terms;  // of the rows, row-major

  static Data Make(Spec spec, std::vector<Row> rows);
  View ViewOf(int row) const {
    return {rows[static_cast<size_t>(row)], points.NumbersOf(row), points.CodesOf(row)};
  }
  std::span<const double> TermsOf(int row) const {
    return std::span(terms).subspan(static_cast<size_t>(row) * spec.terms.size(), spec.terms.size());
  }
};

// What makes two rows alike: which terms of the physical model bound them, how long they take by it, and
// their numbers and names. Facts of hardware count only through the terms, so hardware that was never
// measured has neighbours, too. A value.
class Likeness {
 public:
  Likeness() = default;
  // Learns from the common weights, and the scale of times from rows `use`.
  Likeness(const Data& data, const Physical& physical, std::span<const int> use);

  // Returns the numbers of a row: those of Spec::numbers that are not of hardware, three times the root of
  // each term's share, and the standardised logarithm of the time.
  std::vector<float> Numbers(std::span<const float> numbers, std::span<const double> terms) const;
  Points PointsOf(const Data& data, std::span<const int> rows) const;
  // Finds the columns again, which a file does not have.
  void ChooseColumns(const Spec& spec, std::span<const double> weights);

 private:
  friend struct PredictorFile;
  double LogTime(std::span<const double> terms) const;

  std::vector<int> numbers_;         // columns
  std::vector<double> weights_;      // of the terms
  double mean_ = 0, deviation_ = 1;  // of the logarithm of the time
};

// Everything about an estimator that is fixed before the rows are seen.
struct Recipe {
  std::string name;
  enum class Base { kPhysical, kLinear };
  Base base = Base::kPhysical;
  Physical::Options physical;
  LinearFit::Options linear;
  // Of neighbours, tuned for the split; without weights: untuned. Empty: no neighbours.
  std::optional<Kernel> kernel;
  int count = 64;  // neighbours for one answer
};

// A Recipe fitted to rows. A value; thread-safe once fitted.
class Estimator {
 public:
  // Fits rows `use`, each with a time.
  static Estimator Fit(const Data& data, std::span<const int> use, const Recipe& recipe, Seed seed);

  // Returns the logarithm of ms; its variance is 0 without neighbours.
  Expected LogTime(const View& view) const;
  // Returns each term's share in the time; sum 1. Empty without a physical model.
  std::vector<double> Shares(const Row& row) const;
  const Physical* physical() const { return physical_ ? &*physical_ : nullptr; }
  const LinearFit* linear() const { return linear_ ? &*linear_ : nullptr; }
  const Neighbours* neighbours() const { return neighbours_ ? &*neighbours_ : nullptr; }
  const Likeness& likeness() const { return likeness_; }
  const std::string& name() const { return recipe_.name; }

  // Checks what a file gave against `data`, whose rows the neighbours are. Returns false if it does not fit.
  bool Join(const Data& data);

 private:
  friend struct PredictorFile;
  double BaseLogTime(const Row& row) const;

  Recipe recipe_;
  std::optional<Physical> physical_;
  std::optional<LinearFit> linear_;
  Likeness likeness_;
  std::optional<Neighbours> neighbours_;
};

// Returns log(time) less the logarithm of the common physical time, for every row.
std::vector<double> Residuals(const Data& data, const Physical& physical);

}  // namespace weir::predict
