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
  std::string estimator = "neighbours";  // as ParseEstimator gives it
  uint64_t seed = 1;
  int threads = 1;
  std::function<void(const std::string& what, int64_t done, int64_t total)>
      progress;  // called from any thread; may be empty
};

// Returns the name of an estimator, or kInvalidArgument with the names that there are.
Result<std::string> ParseEstimator(std::string_view text);

// Immutable once fitted, so thread-safe.
class Predictor {
 public:
  // Fits rows that can be used. Returns kInvalidArgument for fewer than 20 rows.
  static Result<Predictor> Fit(Spec spec, Facts facts, std::vector<Row> rows, const FitOptions& options);

  // Returns one answer for each row, in order. A bad row does not affect the others. Returns kInvalidArgument
  // if a key column is missing.
  Result<std::vector<Prediction>> Predict(const Table& rows) const;

  // Moves the predictions to `measured`, rows with their target: of each hardware, of each network on it and
  // of each configuration, by as much as the runs agree. Returns a line for each hardware, each implausible
  // run, and the unusable rows. Returns kInvalidArgument if no row can be used.
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
    Estimator estimator;
    Spread spread = Spread::Constant(1);
    // Count: how many doublings cross-validation went beyond the counts of its fits. Farther out the interval
    // grows with the distance, as the error of a slope does. 0: not cross-validated.
    double reach = 0;
  };
  const Model& ModelOf(Split split) const;
  // Returns by how much the count of the row widens an interval.
  double WidenByCount(const Row& row) const;
  // A row as the model of one split sees it: logarithms.
  struct Guess {
    double log_time = 0, half = 0, variance = 0;
  };
  static Guess GuessOf(const Model& model, const View& view);
  // `impossible`: why the row's own facts cannot be; empty: they can.
  Prediction PredictRow(const Row& row, const std::string& impossible = "") const;
  // Returns the names of what may be shifted: the hardware, the network on it, the configuration.
  std::vector<std::string> LevelsOf(const Row& row) const;
  struct Run {
    std::vector<std::string> levels;
    double miss = 0;  // log(measured / predicted)
  };
  void LearnShifts(const std::vector<Run>& runs);
  Status WidenForUnknownWord(const Table& rows, std::span<const int64_t> unknown, size_t category,
                             std::vector<Prediction>& predictions) const;
  void LearnModels(const FitOptions& options);
  void LearnModel(Split split, const std::vector<Fold>& folds, const FitOptions& options);
  // An estimator on rows that its fits did not see.
  struct Learned {
    Recipe recipe;
    CrossValidation validation;
  };
  Learned Learn(std::string_view name, Split split, const std::vector<Fold>& folds,
                const FitOptions& options) const;
  Estimator FitAll(const Recipe& recipe, const FitOptions& options) const;
  void AddScores(const CrossValidation& validation, results::FitResult::Split& scored) const;
  // Learns the model's interval and scores it.
  void LearnSpread(const CrossValidation& validation, Model& model, results::FitResult::Split& scored);
  void Borrow(Split split, const FitOptions& options);
  // Returns the half-width where no cross-validation gives one.
  double BorrowedHalfWidth() const { return kBorrowed * worst_physical_; }
  // Checks what a file gave; its parts refer to the data. Returns kCorrupt.
  Status Join();

  std::shared_ptr<const Data> data_;  // the estimators' points refer to it
  Facts facts_;
  Applicability known_;
  std::vector<Model> models_;
  std::vector<results::FitResult::Split> splits_;
  double worst_physical_ = kLeastBorrowed;  // 90 % quantile of the physical model's errors, of all splits
  std::optional<Calibration> calibration_;
  struct Shift {
    double log_factor = 0, wider = 1;
  };
  std::map<std::string, Shift> shifts_;  // by level
  uint64_t seed_ = 1;
  std::string estimator_;
};

}  // namespace weir::predict
