#include "cli/study_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "record/journal.h"
#include "report/study_report.h"
#include "report/text.h"
#include "report/unit.h"
#include "report/write.h"
#include "study/result_json.h"
#include "study/two_studies.h"

namespace weir::cli {

Result<StoredStudy> ReadStoredStudy(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder + "/" + kJournalFile, error))
    return Fail(ErrorCode::kNotFound, fmt::format("{} holds no study: weir study FILE.yaml -o {} makes one",
                                                  EscapeBytes(folder), EscapeBytes(folder)));
  const std::string path = folder + "/" + kStudyFile;
  if (!std::filesystem::exists(path, error))
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} has a journal, but not the study file: put it back there, as {}",
                            EscapeBytes(folder), EscapeBytes(path)));
  StoredStudy stored{
      .file = TRY_CONTEXT(study::ParseStudy(TRY(ReadTextFile(path))), path), .design = {}, .journal = {}};
  stored.design = TRY_CONTEXT(study::MakeDesign(stored.file), path);
  const std::string journal = folder + "/" + kJournalFile;
  stored.journal = TRY_CONTEXT(study::ReadEntries(TRY(record::ReadJournal(journal))), journal);
  return stored;
}

Result<Json> WriteReportOf(const std::string& folder, const StoredStudy& stored, const StoredStudy* other) {
  const study::ResultInputs inputs{
      .study = stored.file, .design = stored.design, .journal = stored.journal, .options = {}};
  Json result = study::ResultJson(inputs);
  if (other != nullptr)
    result["compared"] = study::CompareStudies(
        {.study = other->file, .design = other->design, .journal = other->journal, .options = {}}, inputs);
  TRY_STATUS(report::WriteStudyReport(result, folder));
  return result;
}

std::string AnswerText(const Json& result, const std::string& folder) {
  const report::StudyView view(result);
  const report::Unit unit = report::UnitOf(view.objective());
  report::Table table{
      .columns = {"configuration", report::WithUnit(view.objective(), unit.name), "n", "bottleneck"},
      .text_columns = 1};
  for (size_t i = 0; i < view.configurations(); ++i) {
    const Json& figures = view.Metric(i, view.objective());
    const auto bottleneck = view.CommonestWord(i, "bottleneck");
    const auto n = report::NumberAt(figures, "n");
    table.rows.push_back({view.label(i), report::IntervalText(figures, "mean", unit.scale),
                          n ? fmt::format("{:.0f}", *n) : "-", bottleneck ? bottleneck->word : "-"});
  }
  return report::ToText(report::AnswerSection(view)) + "\n" +
         report::ToText({.title = {}, .blocks = {std::move(table)}}) +
         fmt::format(
             "\nThe report: {0}/report.html, report.md; every trial: "
             "{0}/results.csv; by configuration: {0}/summary.csv\n",
             EscapeBytes(folder));
}

}  // namespace weir::cli
