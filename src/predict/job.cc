#include "predict/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace weir::predict {
namespace {

std::string InFolder(const std::string& folder, const std::string& file) {
  return folder.empty() || file.starts_with('/') ? file : folder + "/" + file;
}

Result<Table> ReadFacts(const std::optional<Join>& join, const std::string& folder) {
  if (!join || join->file.empty()) return Table();
  const std::string path = InFolder(folder, join->file);
  return TRY_CONTEXT(Table::WithKey(TRY(ReadCsv(path)), join->table_key), path);
}

bool SpoilsAFit(Fault fault) { return fault == Fault::kDuplicate || fault == Fault::kUnit; }

Json ScoreJson(const Score& score) {
  return {{"mean_percent", 100 * score.mean},
          {"median_percent", 100 * score.median},
          {"p90_percent", 100 * score.p90},
          {"rows", score.rows}};
}

}  // namespace

Result<Checked> ReadAndCheck(const std::string& spec_path, const std::string& data_dir, uint64_t seed,
                             int threads) {
  Checked checked{.spec = TRY(ReadSpec(spec_path))};
  const std::string path = InFolder(data_dir, checked.spec.rows);
  const Table table(TRY(ReadCsv(path)));
  checked.facts = {.hardware = TRY(ReadFacts(checked.spec.hardware, data_dir)),
                   .networks = TRY(ReadFacts(checked.spec.networks, data_dir))};
  std::vector<Row> rows = TRY_CONTEXT(MakeRows(checked.spec, checked.facts, table, WithTarget::kYes), path);
  const std::vector<bool> skipped = TRY(SkippedRows(checked.spec, checked.facts, table));
  checked.total = std::ssize(rows);

  checked.findings = CheckCells(checked.spec, table);
  std::ranges::move(CheckHardware(checked.spec, checked.facts, table), std::back_inserter(checked.findings));
  std::set<int64_t> copies;
  {
    // A copy may carry the id of the row it copies: it is left out by its place.
    std::set<std::string> seen;
    std::map<std::string, int> copied;
    for (const Finding& finding : checked.findings) {
      if (finding.fault == Fault::kDuplicate) ++copied[finding.rows.front()];
    }
    for (int64_t i = std::ssize(rows) - 1; i >= 0; --i) {
      const auto found = copied.find(rows[static_cast<size_t>(i)].id);
      if (found == copied.end() || found->second == 0) continue;
      --found->second;
      copies.insert(i);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (skipped[i]) {
      ++checked.skipped;
    } else if (!rows[i].problem.empty()) {
      ++checked.unusable;
      const bool known = std::ranges::any_of(checked.findings, [&](const Finding& finding) {
        return finding.fault == Fault::kNotANumber && finding.rows.front() == rows[i].id;
      });
      if (!known) checked.findings.push_back({Fault::kNotANumber, rows[i].problem, {rows[i].id}});
    } else if (copies.contains(static_cast<int64_t>(i))) {
      ++checked.left_out;
    } else {
      checked.rows.push_back(std::move(rows[i]));
    }
  }
  if (checked.rows.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: none of {} rows can be used{}", path, checked.total,
                            checked.findings.empty() ? "" : "; the first: " + checked.findings.back().what));
  }
  const Data data = Data::Make(checked.spec, checked.rows);
  std::set<std::string> spoiled;
  for (Finding& finding : TRY(CheckTimes(data, Seed(seed).Stream("checks"), threads))) {
    if (SpoilsAFit(finding.fault)) spoiled.insert(finding.rows.front());
    checked.findings.push_back(std::move(finding));
  }
  checked.left_out += static_cast<int64_t>(
      std::erase_if(checked.rows, [&](const Row& row) { return spoiled.contains(row.id); }));
  return checked;
}

Result<FitJob> FitFromFiles(const std::string& spec_path, const std::string& data_dir,
                            const FitOptions& options) {
  Checked checked = TRY(ReadAndCheck(spec_path, data_dir, options.seed, options.threads));
  const int64_t total = checked.total, skipped = checked.skipped, unusable = checked.unusable,
                left_out = checked.left_out;
  auto predictor =
      Predictor::Fit(std::move(checked.spec), std::move(checked.facts), std::move(checked.rows), options);
  if (!predictor) return Context(spec_path, predictor.error());
  return FitJob{.predictor = std::move(*predictor),
                .findings = std::move(checked.findings),
                .rows = total,
                .skipped = skipped,
                .unusable = unusable,
                .left_out = left_out};
}

std::string FitText(const FitJob& job) {
  const Predictor& predictor = job.predictor;
  std::string text = fmt::format("{}: {} rows; {} skipped, {} unusable, {} left out\n", predictor.spec().name,
                                 job.rows, job.skipped, job.unusable, job.left_out);
  std::map<std::string_view, std::pair<int64_t, std::string>> found;
  for (const Finding& finding : job.findings) {
    auto& [count, first] = found[ToString(finding.fault)];
    if (count++ == 0) {
      first = fmt::format("{}: {}", finding.rows.empty() ? std::string("the tables") : finding.rows.front(),
                          finding.what);
    }
  }
  for (const auto& [fault, entry] : found)
    text += fmt::format("  {:<16} {:>5}  e.g. {}\n", fault, entry.first, entry.second);
  text += "\nerror of time on rows left out, %       mean  median     p90    rows  weight\n";
  for (const Predictor::Rehearsed& rehearsed : predictor.rehearsed()) {
    text += fmt::format(
        "{:<10} {:<24} {:>7.2f} {:>7.2f} {:>7.2f} {:>7}   intervals hold {:.1f} %, half-width {:.1f} %\n",
        ToString(rehearsed.question), "the mixture", 100 * rehearsed.score.mean, 100 * rehearsed.score.median,
        100 * rehearsed.score.p90, rehearsed.score.rows, 100 * rehearsed.coverage,
        100 * rehearsed.half_width);
    for (const CandidateScore& candidate : predictor.scores()) {
      if (candidate.question != rehearsed.question) continue;
      text += fmt::format("{:<10}   {:<22} {:>7.2f} {:>7.2f} {:>7.2f} {:>7}   {}\n", "", candidate.recipe,
                          100 * candidate.score.mean, 100 * candidate.score.median, 100 * candidate.score.p90,
                          candidate.score.rows,
                          candidate.weight > 0 ? fmt::format("{:.2f}", candidate.weight) : "");
    }
  }
  return text;
}

Json FitJson(const FitJob& job) {
  const Predictor& predictor = job.predictor;
  Json json{{"name", predictor.spec().name}, {"target", predictor.spec().target}, {"rows", job.rows},
            {"skipped", job.skipped},        {"unusable", job.unusable},          {"left_out", job.left_out},
            {"fitted", predictor.rows()}};
  Json questions = Json::array(), findings = Json::array();
  for (const Predictor::Rehearsed& rehearsed : predictor.rehearsed()) {
    Json question = ScoreJson(rehearsed.score);
    question["question"] = ToString(rehearsed.question);
    question["interval_coverage_percent"] = 100 * rehearsed.coverage;
    question["interval_half_width_percent"] = 100 * rehearsed.half_width;
    Json candidates = Json::array();
    for (const CandidateScore& candidate : predictor.scores()) {
      if (candidate.question != rehearsed.question) continue;
      Json item = ScoreJson(candidate.score);
      item["candidate"] = candidate.recipe;
      item["weight"] = candidate.weight;
      candidates.push_back(std::move(item));
    }
    question["candidates"] = std::move(candidates);
    questions.push_back(std::move(question));
  }
  for (const Finding& finding : job.findings) {
    Json rows = Json::array();
    for (const std::string& row : finding.rows) rows.push_back(EscapeBytes(row));
    findings.push_back(
        {{"fault", ToString(finding.fault)}, {"what", EscapeBytes(finding.what)}, {"rows", std::move(rows)}});
  }
  json["questions"] = std::move(questions);
  json["findings"] = std::move(findings);
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
