// A fitted predictor: rows in, times with intervals out, and how far each may be trusted.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "predict/applicability.h"
#include "predict/calibration.h"
#include "predict/rehearse.h"
#include "predict/spread.h"

namespace weir::predict {

enum class Regime { kInside, kOutside, kRefused };
std::string_view ToString(Regime regime);  // "inside", "outside", "refused"

struct Prediction {
  std::string id;
  Regime regime = Regime::kRefused;
  std::string outside;  // what is outside and how far; of a refusal, why. Parts are joined by "; "
  std::optional<double> value, low, high;  // of the target, in its unit; nothing when refused
  std::optional<double> time_ms;           // per Spec::per
  std::optional<double> middle_ms;         // as likely to be too long as too short; see Answer::lean
  std::vector<double> shares;              // of Spec::terms in the physical model's time
};

// A candidate under one question, as the fit found it.
struct CandidateScore {
  Question question = Question::kInside;
  std::string recipe;
  Score score;
  double weight = 0;  // in the mixture
};

struct FitOptions {
  std::string estimator = "auto";  // or the name of one kind of candidate
  uint64_t seed = 1;
  int threads = 1;
  std::function<void(const std::string& what, int64_t done, int64_t total)>
      progress;  // from any thread; may be empty
  // What the mixture said of rows that were left out, once for each question that is rehearsed: indices of
  // the rows that the fit was given (one that several folds leave out is there several times), logarithms
  // of ms. From the caller's thread; may be empty.
  std::function<void(Question question, std::span<const int> rows, std::span<const double> predicted,
                     std::span<const double> measured)>
      left_out;
};

// The names that FitOptions::estimator may have.
std::vector<std::string> EstimatorNames();

// Immutable once made; any number of threads may ask it.
class Predictor {
 public:
  // Of rows that can be used. kInvalidArgument for fewer than 20, and an estimator that is not known.
  static Result<Predictor> Fit(Spec spec, Facts facts, std::vector<Row> rows, const FitOptions& options);

  // One answer for each row, in order; those of a bad row do not touch the others. kInvalidArgument where a
  // key column is missing.
  Result<std::vector<Prediction>> Predict(const Table& rows) const;

  // Corrects what it says of each hardware by `measured`, rows of it with their target: by as much of their
  // common error as rehearsals on hardware left out say is to be believed. Nothing is changed where that did
  // not help there, or for hardware that the fit knew. Gives one line for each hardware in `measured`, each
  // run that is too far off to be one, and the rows that cannot be used. kInvalidArgument where no row of it
  // can be used.
  Result<std::vector<std::string>> Calibrate(const Table& measured);

  const Spec& spec() const { return data_->spec; }
  const std::vector<CandidateScore>& scores() const { return scores_; }
  // What the mixture did on left-out rows, by question that could be rehearsed, and the share that its
  // intervals held.
  struct Rehearsed {
    Question question = Question::kInside;
    Score score;
    double coverage = 0, half_width = 0;  // median, of the logarithm
  };
  const std::vector<Rehearsed>& rehearsed() const { return rehearsed_; }
  int64_t rows() const { return std::ssize(data_->numbers); }
  // The tables of facts, as they were when it was fitted; empty where the spec has none.
  const Table& hardware() const { return facts_.hardware; }
  const Table& networks() const { return facts_.networks; }
  // Coefficients and terms as text.
  std::string Explain() const;

  // The same predictor always gives the same bytes.
  std::string Save() const;
  static Result<Predictor> Load(std::string_view text);

 private:
  // How one question is answered.
  struct Answer {
    Question question = Question::kInside;
    std::vector<std::pair<int, double>> mixture;  // of estimators_, with weights
    Spread spread = Spread::Constant(1);
    // Count: how many doublings the rehearsal went beyond what its fits saw. Further out what is missed, and
    // so the interval, goes with the distance, as a slope that is off does. 0: not rehearsed.
    double reach = 0;
    // The relative error of a time that is exp(N(m, s^2)) is least, in the mean, at exp(m - s^2): a time that
    // is said twice too long is off by 100 %, one twice too short by 50. What is said is the interval's
    // middle less lean s^2, with its half-width being 1.645 s.
    double lean = 0;
  };
  const Answer& AnswerOf(Question question) const;
  // What the count of the row widens an interval by.
  double WidenByCount(const Row& row) const;
  Prediction PredictRow(const Row& row) const;
  Status AllowForUnsaid(const Table& rows, std::span<const size_t> unsaid, size_t category,
                        std::vector<Prediction>& predictions) const;
  static std::vector<float> SpreadInput(const View& view, std::span<const double> logs);
  static int SpreadColumns(const Spec& spec);
  Status LearnAnswers(const FitOptions& options);
  Status LearnAnswer(Question question, const std::vector<Fold>& folds, const FitOptions& options);
  std::vector<Recipe> RecipesFor(Question question, const std::vector<Fold>& folds, const FitOptions& options,
                                 Seed seed) const;
  // Numbers, from 0, of what samples that err alike belong to.
  std::vector<int> PartsOf(const Rehearsal& rehearsal) const;
  // The answer's interval and lean, and what the rehearsal, of such parts, says of them. Gives what is said
  // of its samples, logarithms of ms.
  Result<std::vector<double>> LearnSpread(const Rehearsal& rehearsal, std::span<const int> parts,
                                          Answer& answer, Seed seed);
  void Borrow(Question question);
  double BorrowedHalfWidth() const;
  // The index that the recipe will have in estimators_; the same for the same key.
  int Want(const Recipe& recipe, const std::string& key);
  // Fits what is wanted to all rows.
  Status FitWanted(const FitOptions& options);
  Json ToJson() const;

  std::shared_ptr<const Data> data_;  // estimators' points come from it
  Facts facts_;
  Applicability known_;
  std::vector<Estimator> estimators_;
  struct Wanted {
    std::string key;
    Recipe recipe;
  };
  std::vector<Wanted> wanted_;  // while fitting
  std::vector<Answer> answers_;
  std::vector<CandidateScore> scores_;
  std::vector<Rehearsed> rehearsed_;
  std::optional<Calibration> calibration_;
  struct Shift {
    double log_factor = 0, narrower = 1;
  };
  std::map<std::string, Shift> shifts_;  // by hardware
  uint64_t seed_ = 1;
  std::string estimator_;
};

}  // namespace weir::predict
