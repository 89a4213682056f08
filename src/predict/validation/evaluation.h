// Errors of a fit on rows that it did not see: by group, over the range of times, row by row, and against the
// number of rows it learned from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "predict/predictor.h"

namespace weir::predict {

// A row that was left out of a validation. Times in ms.
struct Case {
  std::string id, hardware, network;
  double devices = 1;
  double measured = 0, predicted = 0;
};

// The cases of one split, as FitOptions::left_out tells them.
struct LeftOut {
  Split split = Split::kInside;
  std::vector<Case> cases;
};

struct GroupScore {
  std::string name;
  Score score;
};
// Scores the cases of each `name_of`; the greatest mean error comes first, then by name.
std::vector<GroupScore> ScoreByGroup(std::span<const Case> cases, std::string (*name_of)(const Case&));

// Predicted over measured among cases of like measured time.
struct ProfilePoint {
  double measured = 0;                   // ms; the median
  double low = 0, median = 0, high = 0;  // the 5 %, 50 % and 95 % quantile of predicted / measured
  int64_t cases = 0;
};
// Up to `parts` points of as many cases each, by rising time; fewer where a part would have under ten cases.
std::vector<ProfilePoint> ErrorProfile(std::span<const Case> cases, int64_t parts);

// Those whose times are furthest apart as a ratio, the worst first.
std::vector<Case> WorstCases(std::span<const Case> cases, size_t most);

// How well rows inside the data are predicted by fits on more and more of them. The rows that are predicted
// are the same for every point, and no fit saw them, its choice of a mixture included.
struct LearningPoint {
  int64_t rows = 0;                   // of the fit
  Score score;                        // of the rows that were answered
  double answered = 0, coverage = 0;  // shares: not refused; of those answered, inside of their intervals
};
struct LearningRows {
  const Spec& spec;
  const Facts& facts;
  const Table& table;            // of all rows
  const std::vector<Row>& rows;  // those that can be used; their places are of `table`
};
// An eighth, a quarter, a half and all of three quarters of the rows predict up to a thousand of the others.
// Shares that are too few rows for a fit, or whose fit refuses every row, are left out.
Result<std::vector<LearningPoint>> LearningCurve(const LearningRows& from, const FitOptions& options);

}  // namespace weir::predict
