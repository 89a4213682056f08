#include <fmt/format.h>

#include <map>
#include <utility>

#include "predict/job.h"

namespace weir::predict {
namespace {

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

Json FindingsJson(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    Json rows = Json::array();
    for (const std::string& row : finding.rows) rows.push_back(EscapeBytes(row));
    list.push_back(
        {{"fault", ToString(finding.fault)}, {"what", EscapeBytes(finding.what)}, {"rows", std::move(rows)}});
  }
  return list;
}

Json BeginJson(const Spec& spec, const Checked::Counts& counts) {
  return {{"name", spec.name},         {"target", spec.target},       {"rows", counts.rows},
          {"skipped", counts.skipped}, {"unusable", counts.unusable}, {"left_out", counts.left_out}};
}

Json ScoreJson(const Score& score) {
  return {{"median_percent", 100 * score.median},
          {"p90_percent", 100 * score.p90},
          {"log_mean_percent", 100 * score.log_mean},
          {"mean_percent", 100 * score.mape},
          {"rows", score.rows}};
}

Json GroupsJson(std::span<const Case> cases, std::string (*name_of)(const Case&)) {
  Json list = Json::array();
  for (const GroupScore& group : ScoreByGroup(cases, name_of)) {
    Json item = ScoreJson(group.score);
    item["group"] = EscapeBytes(group.name);
    list.push_back(std::move(item));
  }
  return list;
}

Json CasesJson(const LeftOut& left_out, const Spec& spec, Json split) {
  const std::vector<Case>& cases = left_out.cases;
  if (spec.hardware) split["by_hardware"] = GroupsJson(cases, [](const Case& one) { return one.hardware; });
  if (spec.networks) split["by_network"] = GroupsJson(cases, [](const Case& one) { return one.network; });
  if (!spec.devices.empty())
    split["by_devices"] = GroupsJson(cases, [](const Case& one) { return fmt::format("{:g}", one.devices); });
  Json profile = Json::array(), worst = Json::array();
  for (const ProfilePoint& point : ErrorProfile(cases, kProfileParts)) {
    profile.push_back({{"measured_ms", point.measured},
                       {"predicted_over_measured", point.median},
                       {"low", point.low},
                       {"high", point.high},
                       {"rows", point.cases}});
  }
  for (const Case& one : WorstCases(cases, kWorst)) {
    worst.push_back({{"row", EscapeBytes(one.id)},
                     {"hardware", EscapeBytes(one.hardware)},
                     {"network", EscapeBytes(one.network)},
                     {"devices", one.devices},
                     {"measured_ms", one.measured},
                     {"predicted_ms", one.predicted}});
  }
  split["profile"] = std::move(profile);
  split["worst"] = std::move(worst);
  return split;
}

Json CandidatesJson(const Predictor& predictor, Split split) {
  Json candidates = Json::array();
  for (const CandidateScore& candidate : predictor.scores()) {
    if (candidate.split != split) continue;
    Json item = ScoreJson(candidate.score);
    item["candidate"] = candidate.recipe;
    item["weight"] = candidate.weight;
    candidates.push_back(std::move(item));
  }
  return candidates;
}

Json AblationsJson(const std::vector<Ablation>& ablations) {
  Json list = Json::array();
  for (const Ablation& ablation : ablations) {
    Json item = ScoreJson(ablation.score);
    item["without"] = ablation.without;
    list.push_back(std::move(item));
  }
  return list;
}

Json SplitsJson(const FitJob& job) {
  Json splits = Json::array();
  for (const Predictor::Validated& validated : job.predictor.validated()) {
    Json split = ScoreJson(validated.score);
    split["split"] = ToString(validated.split);
    split["interval_coverage_percent"] = 100 * validated.coverage;
    split["interval_half_width_percent"] = 100 * validated.half_width;
    split["interval_score_of_constant"] = validated.score_of_constant;
    if (!validated.ablations.empty()) split["ablation"] = AblationsJson(validated.ablations);
    split["candidates"] = CandidatesJson(job.predictor, validated.split);
    for (const LeftOut& left_out : job.left_out) {
      if (left_out.split == validated.split)
        split = CasesJson(left_out, job.predictor.spec(), std::move(split));
    }
    splits.push_back(std::move(split));
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

Json CheckJson(const Checked& checked) {
  Json json = BeginJson(checked.spec, checked.counts);
  json["usable"] = checked.rows.size();
  json["findings"] = FindingsJson(checked.findings);
  return json;
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

Json FitJson(const FitJob& job) {
  const Predictor& predictor = job.predictor;
  Json json = BeginJson(predictor.spec(), job.counts);
  json["fitted"] = predictor.rows();
  json["splits"] = SplitsJson(job);
  if (!job.learning.empty()) json["learning_curve"] = Json::array();
  for (const LearningPoint& point : job.learning) {
    Json item = ScoreJson(point.score);
    item["fitted"] = point.rows;
    item["answered_percent"] = 100 * point.answered;
    item["interval_coverage_percent"] = 100 * point.coverage;
    json["learning_curve"].push_back(std::move(item));
  }
  json["findings"] = FindingsJson(job.findings);
  json["models"] = predictor.Explain();
  return json;
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

Json PredictJson(const Predictor& predictor, std::span<const Prediction> predictions) {
  std::map<std::string_view, int64_t> regimes;
  std::map<std::string, int64_t> refusals;
  for (const Prediction& prediction : predictions) {
    ++regimes[ToString(prediction.regime)];
    if (prediction.regime == Regime::kRefused) ++refusals[EscapeBytes(prediction.outside)];
  }
  Json json{
      {"name", predictor.spec().name}, {"target", predictor.spec().target}, {"rows", predictions.size()}};
  for (const Regime regime : {Regime::kInside, Regime::kOutside, Regime::kRefused}) {
    json[std::string(ToString(regime))] = regimes[ToString(regime)];
  }
  json["refusals"] = Json::object();
  for (const auto& [why, count] : refusals) json["refusals"][why] = count;
  return json;
}

}  // namespace weir::predict
