// A fitted predictor: rows in, times with intervals out, and how far each may be trusted.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "predict/interval/applicability.h"
#include "predict/interval/calibration.h"
#include "predict/interval/spread.h"
#include "predict/validation/cross_validation.h"
#include "results/fit_result.h"

namespace weir::predict {

enum class Regime { kInside, kOutside, kRefused };
std::string_view ToString(Regime regime);  // "inside", "outside", "refused"

struct Prediction {
  std::string id;
  Regime regime = Regime::kRefused;
  std::string outside;  // what is outside and how far, or why there is no answer; joined by "; "
  std::optional<double> value, low, high;  // of the target, in its unit; absent when refused
  std::optional<double> time_ms;           // per Spec::per
  std::vector<double> shares;              // of Spec::terms in the physical model's time
};

struct FitOptions {
  std::vector<std::string> candidates;  // of the mixture; empty: all but linear regression
  uint64_t seed = 1;
  int threads = 1;
  std::function<void(const std::string& what, int64_t done, int64_t total)>
      progress;  // called from any thread; may be empty
};

// Parses "auto", or names of candidates joined by commas. Returns kInvalidArgument for another name.
Result<std::vector<std::string>> ParseEstimator(std::string_view text);
// Returns the text that ParseEstimator takes.
std::string EstimatorText(std::span<const std::string> candidates);

// Immutable once fitted, so thread-safe.
class Predictor {
 public:
  // Fits rows that can be used. Returns kInvalidArgument for fewer than 20 rows. REQUIRES: candidates as
  // ParseEstimator gives them.
  static Result<Predictor> Fit(Spec spec, Facts facts, std::vector<Row> rows, const FitOptions& options);

  // Returns one answer for each row, in order. A bad row does not affect the others. Returns kInvalidArgument
  // if a key column is missing.
  Result<std::vector<Prediction>> Predict(const Table& rows) const;

  // Corrects the predictions for each hardware in `measured`, rows with their target, by as much of their
  // common error as cross-validation supports. Changes nothing for hardware that the fit knew, or if it did
  // not help in cross-validation. Returns a line for each hardware, each implausible run, and the unusable
  // rows. Returns kInvalidArgument if no row can be used.
  Result<std::vector<std::string>> Calibrate(const Table& measured);

  const Spec& spec() const { return data_->spec; }
  // The errors on left-out rows, by split that was cross-validated. A file does not keep them.
  const std::vector<results::FitResult::Split>& splits() const { return splits_; }
  int64_t rows() const { return data_->points.size(); }
  // The tables of facts of the fit; empty where the spec has none.
  const Table& hardware() const { return facts_.hardware; }
  const Table& networks() const { return facts_.networks; }
  // Returns coefficients and terms as text.
  std::string Explain() const;

  // Returns the same bytes for the same predictor.
  std::string Save() const;
  static Result<Predictor> Load(std::string_view text);

 private:
  friend struct PredictorFile;
  static constexpr double kBorrowed = 1.5, kLeastBorrowed = 0.7;
  // How rows of one split are predicted.
  struct Model {
    Split split = Split::kInside;
    std::vector<std::pair<int, double>> mixture;  // of estimators_, with weights
    Spread spread = Spread::Constant(1);
    // Count: how many doublings cross-validation went beyond the counts of its fits. Farther out the interval
    // grows with the distance, as the error of a slope does. 0: not cross-validated.
    double reach = 0;
  };
  const Model& ModelOf(Split split) const;
  // Returns by how much the count of the row widens an interval.
  double WidenByCount(const Row& row) const;
  // A row as the model of one split sees it: logarithms, and shares of the physical terms.
  struct Guess {
    double log_time = 0, half = 0;
    std::vector<double> shares;
  };
  Guess GuessOf(const Model& model, const View& view) const;
  Prediction PredictRow(const Row& row) const;
  Status WidenForUnknownWord(const Table& rows, std::span<const int64_t> unknown, size_t category,
                             std::vector<Prediction>& predictions) const;
  static std::vector<float> SpreadInput(const View& view, std::span<const double> logs);
  static int SpreadColumns(const Spec& spec);
  Status LearnModels(const FitOptions& options);
  Status LearnModel(Split split, const std::vector<Fold>& folds, const FitOptions& options);
  std::vector<Recipe> RecipesFor(Split split, const std::vector<Fold>& folds, const FitOptions& options,
                                 Seed seed) const;
  // Tells how well the candidates and their mixture did.
  void AddScores(const CrossValidation& validation, results::FitResult::Split& scored) const;
  // Numbers, from 0, the parts of samples that err alike.
  std::vector<int> PartsOf(const CrossValidation& validation) const;
  // Learns the model's interval and scores it.
  Status LearnSpread(const CrossValidation& validation, std::span<const int> parts, Model& model,
                     results::FitResult::Split& scored, Seed seed);
  void Borrow(Split split);
  // Returns the half-width where no cross-validation gives one.
  double BorrowedHalfWidth() const { return kBorrowed * worst_physical_; }
  // Returns the index that the recipe will have in estimators_; one for each key.
  int Want(const Recipe& recipe, const std::string& key);
  // Fits the wanted recipes to all rows.
  Status FitWanted(const FitOptions& options);
  // Checks what a file gave; its parts refer to the data. Returns kCorrupt.
  Status Join();

  std::shared_ptr<const Data> data_;  // the estimators' points refer to it
  Facts facts_;
  Applicability known_;
  std::vector<Estimator> estimators_;
  struct Wanted {
    std::string key;
    Recipe recipe;
  };
  std::vector<Wanted> wanted_;  // while fitting
  std::vector<Model> models_;
  std::vector<results::FitResult::Split> splits_;
  double worst_physical_ = kLeastBorrowed;  // 90 % quantile of the physical model's errors, of all splits
  std::optional<Calibration> calibration_;
  struct Shift {
    double log_factor = 0, narrower = 1;
  };
  std::map<std::string, Shift> shifts_;  // by hardware
  uint64_t seed_ = 1;
  std::string estimator_;
};

}  // namespace weir::predict
