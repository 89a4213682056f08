// How wide an interval must be: conformal, so that it holds as often as it says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/seed.h"
#include "predict/trees.h"

namespace weir::predict {

// Half-widths on the scale of logarithms. Each row's own difficulty is learned from what left-out rows were
// missed by, cross-fitted, and the whole is scaled so that the share `coverage` of the left-out rows lies
// within (split conformal prediction with a normalised score: Papadopoulos and others 2002; Lei and others
// 2018, section 5). A value.
class Spread {
 public:
  // `x`, row-major, tells of each sample; `misses` are log(predicted / measured); samples of one `part` are
  // kept together when it is checked (a row by itself inside, hardware outside); each counts as its
  // `importance`, 1 in the mean. What the trees say of difficulty is believed wholly, half or not at all, as
  // the interval score on samples of other parts is least. Few samples, or columns 0: one width for all.
  struct Learned;
  static Result<Learned> Learn(std::span<const float> x, int columns, std::span<const double> misses,
                               std::span<const double> importance, std::span<const int> parts,
                               double coverage, Seed seed);
  static Spread Constant(double half_width);
  // The same, all wider by `factor`.
  Spread Times(double factor) const;

  double HalfWidth(std::span<const float> x) const;

  Json ToJson() const;
  // kCorrupt for one that does not look at rows of `columns` numbers.
  static Result<Spread> FromJson(const Json& json, int columns);

 private:
  double scale_ = 1, greatest_ = 1;  // greatest: of the half-widths
  double belief_ = 0;                // in what the trees say: a power of the expected miss
  std::optional<Trees> difficulty_;  // log of the expected miss
};

struct Spread::Learned {
  Spread spread;
  std::vector<double> half_widths;  // of the samples, each by what those of other parts told
};

// What is taken off the logarithm in the middle of an interval, `lean` times the square of the deviation that
// its half-width stands for (see Predictor::Answer::lean); not more than leads to its end.
double BelowMiddle(double lean, double half_width);

// How many times wider an interval must be that was learned from rows of few groups (hardware left out,
// counts above a bound) to hold for the rows of another: what the rows of a group have in common was seen
// only as often as there are groups, so its part of the miss goes by Student's t of groups - 1 degrees and
// the prediction's sqrt(1 + 1 / groups), where that of many would go by the normal distribution; at most 2,
// as what two groups ask for would say nothing; 1 for one group, which tells nothing of others.
// REQUIRES: as many of both.
double ForAnotherGroup(std::span<const double> misses, std::span<const std::string> groups);

}  // namespace weir::predict
