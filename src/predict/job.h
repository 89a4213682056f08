// What `weir fit` and `weir predict` do, from files to text and JSON, without printing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "predict/checks.h"
#include "predict/predictor.h"

namespace weir::predict {

struct FitJob {
  Predictor predictor;
  std::vector<Finding> findings;
  int64_t rows = 0, skipped = 0, unusable = 0, left_out = 0;  // left out for a finding
};

// Reads the SPEC and its tables from `data_dir`, checks the rows, and fits. Copies, and rows whose unit is
// wrong, are left out; other findings are told only. Errors begin with the path.
Result<FitJob> FitFromFiles(const std::string& spec_path, const std::string& data_dir,
                            const FitOptions& options);

// Only the reading and checking: the rows that can be used, and what was found.
struct Checked {
  Spec spec;
  Facts facts;
  std::vector<Row> rows;
  std::vector<Finding> findings;
  int64_t total = 0, skipped = 0, unusable = 0, left_out = 0;
};
Result<Checked> ReadAndCheck(const std::string& spec_path, const std::string& data_dir, uint64_t seed,
                             int threads);

std::string FitText(const FitJob& job);
Json FitJson(const FitJob& job);

// Columns row_id,prediction,low,high,regime,outside; a refused row has no numbers.
std::string ScoredCsv(std::span<const Prediction> predictions);
// How many of each regime, and why rows were refused (each reason once).
Json PredictJson(const Predictor& predictor, std::span<const Prediction> predictions);

}  // namespace weir::predict
