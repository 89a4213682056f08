#include "predict/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "base/file.h"
#include "predict/features/hardware_terms.h"
#include "predict/features/network_facts.h"
#include "predict/table/trials.h"

namespace weir::predict {
namespace {

using results::FitResult;

std::string InFolder(const std::string& folder, const std::string& file) {
  return folder.empty() || file.starts_with('/') ? file : folder + "/" + file;
}

Result<Table> ReadFacts(const std::optional<Join>& join, const std::string& folder) {
  if (!join || join->file.empty()) return Table();
  const std::string path = InFolder(folder, join->file);
  auto facts = ReadCsv(path);
  if (!facts && facts.error().code == ErrorCode::kNotFound)
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} (weir's own data/{} is one to begin with)", facts.error().message,
                            std::filesystem::path(path).filename().string()));
  return TRY_CONTEXT(Table::WithKey(TRY(std::move(facts)), join->table_key), path);
}

bool SpoilsAFit(std::string_view fault) { return fault == Fault::kDuplicate || fault == Fault::kUnit; }

// Marks each row of the table that a finding of this kind names.
std::vector<char> Marked(const std::vector<Finding>& findings, bool (*kind)(std::string_view), int64_t rows) {
  std::vector<char> marked(static_cast<size_t>(rows), 0);
  for (const Finding& finding : findings) {
    if (!kind(finding.fault)) continue;
    for (const int64_t place : finding.places) marked[static_cast<size_t>(place)] = 1;
  }
  return marked;
}

// Keeps the rows of `made` that can be used; the others are counted, and become findings unless they are.
void Sort(std::vector<Row> made, const std::vector<bool>& skipped, Checked& checked) {
  FitResult& counts = checked.result;
  counts.rows = std::ssize(made);
  const std::vector<char> told = Marked(
      checked.findings, [](std::string_view fault) { return fault == Fault::kNotANumber; }, counts.rows);
  const std::vector<char> spoiled = Marked(checked.findings, SpoilsAFit, counts.rows);
  for (size_t i = 0; i < made.size(); ++i) {
    Row& row = made[i];
    if (skipped[i]) {
      ++counts.skipped;
    } else if (!row.problem.empty()) {
      ++counts.unusable;
      if (!told[i]) checked.findings.push_back(Finding::Of(Fault::kUnusable, row.problem, row.id, row.place));
    } else if (spoiled[i]) {
      ++counts.left_out;
    } else {
      checked.rows.push_back(std::move(row));
    }
  }
}

// Drops the terms that are one GPU's name, here and in the rows.
Status DropOneHardwareTerms(Checked& checked) {
  for (const OneHardwareTerm& one :
       TRY(FindOneHardwareTerms(checked.spec, checked.facts, checked.table, checked.rows))) {
    const auto term =
        std::ranges::find(checked.spec.terms, one.term, &Named::name) - checked.spec.terms.begin();
    for (Row& row : checked.rows) row.terms.erase(row.terms.begin() + term);
    checked.spec.DropTerm(one.term);
    checked.findings.push_back(Finding::Of(
        Fault::kOneHardware,
        fmt::format("the term {} separates {} from all other hardware and nothing else: it is left out of "
                    "the physical model",
                    one.term, one.hardware)));
  }
  return {};
}

Status CheckTimesOf(Checked& checked, uint64_t seed, int threads) {
  const Data data = Data::Make(checked.spec, checked.rows);
  std::vector<Finding> found = CheckTimes(data, Seed(seed).Stream("checks"), threads);
  const std::vector<char> spoiled = Marked(found, SpoilsAFit, checked.result.rows);
  checked.result.left_out += static_cast<int64_t>(std::erase_if(
      checked.rows, [&](const Row& row) { return spoiled[static_cast<size_t>(row.place)] != 0; }));
  std::ranges::move(found, std::back_inserter(checked.findings));
  return {};
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

}  // namespace

Result<NamedSpec> ReadNamedSpec(const JobPaths& paths) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(paths.spec, ignored))
    return NamedSpec{TRY(ReadSpec(paths.spec)), paths.data_dir};
  const std::string journal = InFolder(paths.spec, "journal.jsonl");
  const std::string text = TRY_CONTEXT(ReadTextFile(journal), "a folder is a study's, with its journal");
  const std::string name = std::filesystem::weakly_canonical(paths.spec, ignored).filename().string();
  return NamedSpec{TRY_CONTEXT(ParseSpec(TRY_CONTEXT(SpecOfTrials(text, name), journal)), journal),
                   paths.spec};
}

Result<Checked> ReadAndCheck(const JobPaths& named, uint64_t seed, int threads) {
  NamedSpec read = TRY(ReadNamedSpec(named));
  Checked checked{.spec = std::move(read.spec)};
  checked.result.name = checked.spec.name;
  checked.result.target = checked.spec.target;
  const JobPaths paths{.spec = named.spec, .data_dir = std::move(read.data_dir)};
  const Spec& spec = checked.spec;
  const std::string path = InFolder(paths.data_dir, spec.rows);
  checked.table = Table(TRY(ReadRows(path)));
  checked.facts = {.hardware = TRY(ReadFacts(spec.hardware, paths.data_dir)),
                   .networks = TRY(ReadFacts(spec.networks, paths.data_dir))};
  if (const Status known = CheckNames(spec, checked.facts, checked.table); !known)
    return Context(paths.spec, known.error());
  std::vector<Row> made = TRY_CONTEXT(MakeRows(spec, checked.facts, checked.table, WithTarget::kYes), path);
  checked.findings = CheckCells(spec, checked.table);
  std::ranges::move(CheckFacts(spec, checked.facts, checked.table), std::back_inserter(checked.findings));
  Sort(std::move(made), SkippedRows(spec, checked.facts, checked.table), checked);
  if (checked.rows.empty()) {
    const std::string why = checked.findings.empty() ? "" : "; the first: " + checked.findings.front().what;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: none of {} rows can be used{}{}", path, checked.result.rows,
                    checked.result.skipped > 0 ? fmt::format(", {} are skipped", checked.result.skipped) : "",
                    why));
  }
  std::ranges::move(CheckExpectations(checked.rows), std::back_inserter(checked.findings));
  TRY_STATUS(DropOneHardwareTerms(checked));
  TRY_STATUS(CheckTimesOf(checked, seed, threads));
  if (spec.networks && spec.networks->file.empty())
    checked.facts.networks = TRY_CONTEXT(NetworkFactsOf(spec, checked.table), path);
  checked.result.usable = std::ssize(checked.rows);
  checked.result.findings = FindingsOf(checked.findings);
  return checked;
}

Result<FitJob> FitFromFiles(const JobPaths& paths, const FitJobOptions& options) {
  Checked checked = TRY(ReadAndCheck(paths, options.fit.seed, options.fit.threads));
  FitResult result = std::move(checked.result);
  result.usable.reset();
  if (options.learning_curve) {
    result.learning_curve = TRY_CONTEXT(
        LearningCurve(
            {.spec = checked.spec, .facts = checked.facts, .table = checked.table, .rows = checked.rows},
            options.fit),
        paths.spec);
  }
  Predictor predictor = TRY_CONTEXT(
      Predictor::Fit(std::move(checked.spec), std::move(checked.facts), std::move(checked.rows), options.fit),
      paths.spec);
  result.fitted = predictor.rows();
  result.splits = predictor.splits();
  result.models = predictor.Explain();
  return FitJob{std::move(predictor), std::move(result)};
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
    const Regime regime = prediction.regime;
    ++(regime == Regime::kInside    ? result.inside
       : regime == Regime::kOutside ? result.outside
                                    : result.refused);
    if (regime == Regime::kRefused) ++result.refusals[EscapeBytes(prediction.outside)];
  }
  return result;
}

}  // namespace weir::predict
