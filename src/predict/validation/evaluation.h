// Errors of a fit on rows that it did not see: by group, over the range of times, row by row, and against the
// number of rows it learned from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "predict/predictor.h"
#include "results/fit_result.h"

namespace weir::predict {

// A row that was left out of a validation.
using Case = results::FitResult::Case;

// Scores the cases of each `name_of`; the greatest mean error comes first, then by name.
std::vector<results::FitResult::Group> ScoreByGroup(std::span<const Case> cases,
                                                    std::string (*name_of)(const Case&));

// Returns up to `parts` points of as many cases each, by rising time; fewer where a part would have under ten
// cases.
std::vector<results::FitResult::ProfilePoint> ErrorProfile(std::span<const Case> cases, int64_t parts);

// Returns those whose times are furthest apart as a ratio, the worst first.
std::vector<Case> WorstCases(std::span<const Case> cases, size_t most);

// Adds to `split` the scores by hardware, network and count, the profile, and the worst cases.
void AddCases(const Spec& spec, std::span<const Case> cases, results::FitResult::Split& split);

// How well rows inside the data are predicted by fits on more and more of them. The rows that are predicted
// are the same for every point, and no fit saw them, its choice of a mixture included.
struct LearningRows {
  const Spec& spec;
  const Facts& facts;
  const Table& table;            // of all rows
  const std::vector<Row>& rows;  // those that can be used; their places are of `table`
};
// An eighth, a quarter, a half and all of three quarters of the rows predict up to a thousand of the others.
// Shares that are too few rows for a fit, or whose fit refuses every row, are left out.
Result<std::vector<results::FitResult::LearningPoint>> LearningCurve(const LearningRows& from,
                                                                     const FitOptions& options);

}  // namespace weir::predict
