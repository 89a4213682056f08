#include <fmt/format.h>

#include <map>
#include <utility>

#include "predict/job.h"

namespace weir::predict {
namespace {

using results::FitResult;

constexpr int64_t kProfileParts = 12;
constexpr size_t kWorst = 15;

std::string NameText(const Checked::Counts& counts, const std::string& name) {
  return fmt::format("{}: {} rows; {} skipped, {} unusable, {} left out\n", name, counts.rows, counts.skipped,
                     counts.unusable, counts.left_out);
}

// Returns a line for each kind of fault: how many, and the first.
std::string FindingsText(const std::vector<Finding>& findings) {
  std::map<std::string_view, std::pair<int64_t, std::string>> found;
  for (const Finding& finding : findings) {
    auto& [count, first] = found[ToString(finding.fault)];
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
    one.fault = ToString(finding.fault);
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

results::FitScore ScoreOf(const Score& score) {
  return {.median_percent = 100 * score.median,
          .p90_percent = 100 * score.p90,
          .log_mean_percent = 100 * score.log_mean,
          .mean_percent = 100 * score.mape,
          .rows = score.rows};
}

std::vector<FitResult::Group> GroupsOf(std::span<const Case> cases, std::string (*name_of)(const Case&)) {
  std::vector<FitResult::Group> list;
  for (const GroupScore& group : ScoreByGroup(cases, name_of))
    list.push_back({.score = ScoreOf(group.score), .name = EscapeBytes(group.name)});
  return list;
}

void AddCases(const LeftOut& left_out, const Spec& spec, FitResult::Split& split) {
  const std::vector<Case>& cases = left_out.cases;
  if (spec.hardware) split.by_hardware = GroupsOf(cases, [](const Case& one) { return one.hardware; });
  if (spec.networks) split.by_network = GroupsOf(cases, [](const Case& one) { return one.network; });
  if (!spec.devices.empty())
    split.by_devices = GroupsOf(cases, [](const Case& one) { return fmt::format("{:g}", one.devices); });
  split.profile.emplace();
  for (const ProfilePoint& point : ErrorProfile(cases, kProfileParts)) {
    split.profile->push_back({.measured_ms = point.measured,
                              .predicted_over_measured = point.median,
                              .low = point.low,
                              .high = point.high,
                              .rows = point.cases});
  }
  split.worst.emplace();
  for (const Case& one : WorstCases(cases, kWorst)) {
    split.worst->push_back({.row = EscapeBytes(one.id),
                            .hardware = EscapeBytes(one.hardware),
                            .network = EscapeBytes(one.network),
                            .devices = one.devices,
                            .measured_ms = one.measured,
                            .predicted_ms = one.predicted});
  }
}

std::vector<FitResult::Candidate> CandidatesOf(const Predictor& predictor, Split split) {
  std::vector<FitResult::Candidate> candidates;
  for (const CandidateScore& candidate : predictor.scores()) {
    if (candidate.split != split) continue;
    candidates.push_back(
        {.score = ScoreOf(candidate.score), .name = candidate.recipe, .weight = candidate.weight});
  }
  return candidates;
}

std::vector<FitResult::Split> SplitsOf(const FitJob& job) {
  std::vector<FitResult::Split> splits;
  for (const Predictor::Validated& validated : job.predictor.validated()) {
    FitResult::Split& split = splits.emplace_back();
    split.score = ScoreOf(validated.score);
    split.name = ToString(validated.split);
    split.interval_coverage_percent = 100 * validated.coverage;
    split.interval_half_width_percent = 100 * validated.half_width;
    split.interval_score_of_constant = validated.score_of_constant;
    for (const Ablation& ablation : validated.ablations)
      split.ablation.push_back({.score = ScoreOf(ablation.score), .without = ablation.without});
    split.candidates = CandidatesOf(job.predictor, validated.split);
    for (const LeftOut& left_out : job.left_out) {
      if (left_out.split == validated.split) AddCases(left_out, job.predictor.spec(), split);
    }
  }
  return splits;
}

// A line of the table of scores.
std::string ScoreText(std::string_view split, std::string_view name, const Score& score) {
  return fmt::format("{:<10} {:<24} {:>7.2f} {:>7.2f} {:>9.2f} {:>7.2f} {:>7}", split, name,
                     100 * score.median, 100 * score.p90, 100 * score.log_mean, 100 * score.mape, score.rows);
}

std::string CandidatesText(const Predictor& predictor, Split split) {
  std::string text;
  for (const CandidateScore& candidate : predictor.scores()) {
    if (candidate.split != split) continue;
    text += fmt::format("{}   {}\n", ScoreText("", "  " + candidate.recipe, candidate.score),
                        candidate.weight > 0 ? fmt::format("{:.2f}", candidate.weight) : "");
  }
  return text;
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
  for (const Predictor::Validated& validated : predictor.validated()) {
    text +=
        fmt::format("{}   intervals hold {:.1f} %, half-width {:.1f} %, score {:.2f} of a constant width's\n",
                    ScoreText(ToString(validated.split), "the mixture", validated.score),
                    100 * validated.coverage, 100 * validated.half_width, validated.score_of_constant);
    text += CandidatesText(predictor, validated.split);
    for (const Ablation& ablation : validated.ablations)
      text += ScoreText("", ablation.without.empty() ? "  nested: all" : "  nested: no " + ablation.without,
                        ablation.score) +
              "\n";
  }
  return text;
}

FitResult MakeFitResult(const FitJob& job) {
  const Predictor& predictor = job.predictor;
  FitResult result = BeginResult(predictor.spec(), job.counts);
  result.fitted = predictor.rows();
  result.splits = SplitsOf(job);
  for (const LearningPoint& point : job.learning) {
    result.learning_curve.push_back({.score = ScoreOf(point.score),
                                     .fitted = point.rows,
                                     .answered_percent = 100 * point.answered,
                                     .interval_coverage_percent = 100 * point.coverage});
  }
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
