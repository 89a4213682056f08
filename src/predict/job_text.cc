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

// A line for each kind of fault: how many, and the first.
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
  return {{"mean_percent", 100 * score.mean},
          {"median_percent", 100 * score.median},
          {"p90_percent", 100 * score.p90},
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

Json CasesJson(const LeftOut& left_out, const Spec& spec, Json question) {
  const std::vector<Case>& cases = left_out.cases;
  if (spec.hardware)
    question["by_hardware"] = GroupsJson(cases, [](const Case& one) { return one.hardware; });
  if (spec.networks) question["by_network"] = GroupsJson(cases, [](const Case& one) { return one.network; });
  if (!spec.devices.empty())
    question["by_devices"] =
        GroupsJson(cases, [](const Case& one) { return fmt::format("{:g}", one.devices); });
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
  question["profile"] = std::move(profile);
  question["worst"] = std::move(worst);
  return question;
}

Json CandidatesJson(const Predictor& predictor, Question question) {
  Json candidates = Json::array();
  for (const CandidateScore& candidate : predictor.scores()) {
    if (candidate.question != question) continue;
    Json item = ScoreJson(candidate.score);
    item["candidate"] = candidate.recipe;
    item["weight"] = candidate.weight;
    candidates.push_back(std::move(item));
  }
  return candidates;
}

Json QuestionsJson(const FitJob& job) {
  Json questions = Json::array();
  for (const Predictor::Rehearsed& rehearsed : job.predictor.rehearsed()) {
    Json question = ScoreJson(rehearsed.score);
    question["question"] = ToString(rehearsed.question);
    question["interval_coverage_percent"] = 100 * rehearsed.coverage;
    question["interval_half_width_percent"] = 100 * rehearsed.half_width;
    question["candidates"] = CandidatesJson(job.predictor, rehearsed.question);
    for (const LeftOut& left_out : job.left_out) {
      if (left_out.question == rehearsed.question)
        question = CasesJson(left_out, job.predictor.spec(), std::move(question));
    }
    questions.push_back(std::move(question));
  }
  return questions;
}

std::string CandidatesText(const Predictor& predictor, Question question) {
  std::string text;
  for (const CandidateScore& candidate : predictor.scores()) {
    if (candidate.question != question) continue;
    text += fmt::format("{:<10}   {:<22} {:>7.2f} {:>7.2f} {:>7.2f} {:>7}   {}\n", "", candidate.recipe,
                        100 * candidate.score.mean, 100 * candidate.score.median, 100 * candidate.score.p90,
                        candidate.score.rows,
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
  text += "\nerror of time on rows left out, %       mean  median     p90    rows  weight\n";
  for (const Predictor::Rehearsed& rehearsed : predictor.rehearsed()) {
    text += fmt::format(
        "{:<10} {:<24} {:>7.2f} {:>7.2f} {:>7.2f} {:>7}   intervals hold {:.1f} %, half-width {:.1f} %\n",
        ToString(rehearsed.question), "the mixture", 100 * rehearsed.score.mean, 100 * rehearsed.score.median,
        100 * rehearsed.score.p90, rehearsed.score.rows, 100 * rehearsed.coverage,
        100 * rehearsed.half_width);
    text += CandidatesText(predictor, rehearsed.question);
  }
  return text;
}

Json FitJson(const FitJob& job) {
  const Predictor& predictor = job.predictor;
  Json json = BeginJson(predictor.spec(), job.counts);
  json["fitted"] = predictor.rows();
  json["questions"] = QuestionsJson(job);
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
