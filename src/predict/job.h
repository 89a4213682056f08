// What `weir fit` and `weir predict` do, from files to text and JSON, without printing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "predict/checks.h"
#include "predict/evaluation.h"
#include "predict/predictor.h"

namespace weir::predict {

struct JobPaths {
  std::string spec;
  std::string data_dir;  // of the tables that the SPEC names; one that begins with / is itself
};

// A SPEC with its rows, read and checked: what a fit begins with.
struct Checked {
  Spec spec;
  Facts facts;
  Table table;            // all rows
  std::vector<Row> rows;  // those that can be used
  std::vector<Finding> findings;
  struct Counts {
    int64_t rows = 0, skipped = 0, unusable = 0, left_out = 0;  // left out for a finding
  } counts;
};

// Copies, and rows whose unit is wrong, are left out; other findings are told only. Errors begin with the
// path; kInvalidArgument where no row is left.
Result<Checked> ReadAndCheck(const JobPaths& paths, uint64_t seed, int threads);

struct FitJob {
  Predictor predictor;
  std::vector<Finding> findings;
  Checked::Counts counts;
  std::vector<LeftOut> left_out;        // by question that was rehearsed
  std::vector<LearningPoint> learning;  // where it was asked for
};
struct FitJobOptions {
  FitOptions fit;
  bool learning_curve = false;  // takes about half as long again
};
// Reads, checks and fits.
Result<FitJob> FitFromFiles(const JobPaths& paths, const FitJobOptions& options);

std::string CheckText(const Checked& checked);
Json CheckJson(const Checked& checked);
std::string FitText(const FitJob& job);
// Scores of every candidate by question, and of the mixture by hardware, network and count; its errors over
// the range of times; the worst rows; the learning curve; findings; the models as text.
Json FitJson(const FitJob& job);

// Columns row_id,prediction,low,high,regime,outside; a refused row has no numbers.
std::string ScoredCsv(std::span<const Prediction> predictions);
// How many of each regime, and why rows were refused (each reason once).
Json PredictJson(const Predictor& predictor, std::span<const Prediction> predictions);

}  // namespace weir::predict
