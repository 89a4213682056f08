// The work of `weir fit` and `weir predict`, from files to results, without printing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "predict/predictor.h"
#include "predict/validation/checks.h"
#include "predict/validation/evaluation.h"
#include "results/fit_result.h"
#include "results/predict_result.h"

namespace weir::predict {

struct JobPaths {
  std::string spec;      // a SPEC file, or the folder of a study, whose factors make the SPEC
  std::string data_dir;  // of the tables that the SPEC names; a path that begins with / is used as it is
};

// Returns the SPEC that `paths` names. The data folder of a study is the study's own.
struct NamedSpec {
  Spec spec;
  std::string data_dir;
};
Result<NamedSpec> ReadNamedSpec(const JobPaths& paths);

// A SPEC with its rows, read and checked.
struct Checked {
  Spec spec;
  Facts facts;
  Table table;            // all rows
  std::vector<Row> rows;  // those that can be used
  std::vector<Finding> findings;
  results::FitResult result;  // of the check
};

// Reads and checks rows. Copies and rows with a wrong unit are left out; other findings are reported only.
// Errors begin with the path. Returns kInvalidArgument if no row is left.
Result<Checked> ReadAndCheck(const JobPaths& paths, uint64_t seed, int threads);

struct FitJob {
  Predictor predictor;
  // The scores of every candidate by split, and of the mixture by hardware, network and count; its errors
  // over the range of times; the worst rows; the learning curve if it was asked for; findings; the models as
  // text.
  results::FitResult result;
};
struct FitJobOptions {
  FitOptions fit;
  bool learning_curve = false;  // takes about half as long again
};
// Reads, checks and fits.
Result<FitJob> FitFromFiles(const JobPaths& paths, const FitJobOptions& options);

// Returns the columns row_id,prediction,low,high,regime,outside; a refused row has no numbers.
std::string ScoredCsv(std::span<const Prediction> predictions);
// Counts the regimes, and why rows were refused.
results::PredictResult MakePredictResult(const Predictor& predictor, std::span<const Prediction> predictions);

}  // namespace weir::predict
