#include <fmt/format.h>

#include <map>
#include <utility>

#include "predict/job.h"

namespace weir::predict {
namespace {

using results::FitResult;

std::string NameText(const Checked::Counts& counts, const std::string& name) {
  return fmt::format("{}: {} rows; {} skipped, {} unusable, {} left out\n", name, counts.rows, counts.skipped,
                     counts.unusable, counts.left_out);
}

// Returns a line for each kind of fault: how many, and the first.
std::string FindingsText(const std::vector<Finding>& findings) {
  std::map<std::string_view, std::pair<int64_t, std::string>> found;
  for (const Finding& finding : findings) {
    auto& [count, first] = found[finding.fault];
    if (count++ == 0) {
      first = fmt::format("{}: {}", finding.rows.empty() ? std::string("the tables") : finding.rows.front(),
                          finding.what);
    }
  }
  std::string text;
  for (const auto& [fault, entry] : found)
    text += fmt::format("  {:<16} {:>5}  e.g. {}\n", fault, entry.first, entry.second);
  return text;
}

std::vector<FitResult::Finding> FindingsOf(const std::vector<Finding>& findings) {
  std::vector<FitResult::Finding> list;
  for (const Finding& finding : findings) {
    FitResult::Finding& one = list.emplace_back();
    one.fault = finding.fault;
    one.what = EscapeBytes(finding.what);
    for (const std::string& row : finding.rows) one.rows.push_back(EscapeBytes(row));
  }
  return list;
}

FitResult BeginResult(const Spec& spec, const Checked::Counts& counts) {
  FitResult result;
  result.name = spec.name;
  result.target = spec.target;
  result.rows = counts.rows;
  result.skipped = counts.skipped;
  result.unusable = counts.unusable;
  result.left_out = counts.left_out;
  return result;
}

// A line of the table of scores.
std::string ScoreText(std::string_view split, std::string_view name, const results::FitScore& score) {
  return fmt::format("{:<10} {:<24} {:>7.2f} {:>7.2f} {:>9.2f} {:>7.2f} {:>7}", split, name,
                     score.median_percent, score.p90_percent, score.log_mean_percent, score.mean_percent,
                     score.rows);
}

}  // namespace

std::string CheckText(const Checked& checked) {
  return NameText(checked.counts, checked.spec.name) + FindingsText(checked.findings);
}

FitResult MakeCheckResult(const Checked& checked) {
  FitResult result = BeginResult(checked.spec, checked.counts);
  result.usable = std::ssize(checked.rows);
  result.findings = FindingsOf(checked.findings);
  return result;
}

std::string FitText(const FitJob& job) {
  const Predictor& predictor = job.predictor;
  std::string text = NameText(job.counts, predictor.spec().name) + FindingsText(job.findings);
  text +=
      "\nerror of time on left-out rows, %     median     p90  exp|log|    mape    rows   weight\n"
      "(exp|log|: exp(mean |log(predicted / measured)|) - 1)\n";
  for (const FitResult::Split& split : predictor.splits()) {
    text +=
        fmt::format("{}   intervals hold {:.1f} %, half-width {:.1f} %, score {:.2f} of a constant width's\n",
                    ScoreText(split.name, "the mixture", split.score), split.interval_coverage_percent,
                    split.interval_half_width_percent, split.interval_score_of_constant);
    for (const auto& [score, name, weight] : split.candidates)
      text += fmt::format("{}   {}\n", ScoreText("", "  " + name, score),
                          weight > 0 ? fmt::format("{:.2f}", weight) : "");
    for (const auto& [score, without] : split.ablation)
      text += ScoreText("", without.empty() ? "  nested: all" : "  nested: no " + without, score) + "\n";
  }
  return text;
}

FitResult MakeFitResult(const FitJob& job) {
  const Predictor& predictor = job.predictor;
  FitResult result = BeginResult(predictor.spec(), job.counts);
  result.fitted = predictor.rows();
  result.splits = predictor.splits();
  result.learning_curve = job.learning;
  result.findings = FindingsOf(job.findings);
  result.models = predictor.Explain();
  return result;
}

std::string ScoredCsv(std::span<const Prediction> predictions) {
  std::string text = "row_id,prediction,low,high,regime,outside\n";
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.6g}", *value) : std::string();
  };
  for (const Prediction& prediction : predictions) {
    const std::vector<std::string> cells = {prediction.id,
                                            number(prediction.value),
                                            number(prediction.low),
                                            number(prediction.high),
                                            std::string(ToString(prediction.regime)),
                                            prediction.outside};
    text += CsvLine(cells);
  }
  return text;
}

results::PredictResult MakePredictResult(const Predictor& predictor,
                                         std::span<const Prediction> predictions) {
  results::PredictResult result{.name = predictor.spec().name,
                                .target = predictor.spec().target,
                                .rows = std::ssize(predictions),
                                .refusals = {}};
  for (const Prediction& prediction : predictions) {
    switch (prediction.regime) {
      case Regime::kInside:
        ++result.inside;
        break;
      case Regime::kOutside:
        ++result.outside;
        break;
      case Regime::kRefused:
        ++result.refused;
        ++result.refusals[EscapeBytes(prediction.outside)];
        break;
    }
  }
  return result;
}

}  // namespace weir::predict
