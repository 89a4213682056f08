#include "cli/study_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "record/journal.h"
#include "report/study_report.h"
#include "report/study_text.h"
#include "report/text.h"
#include "report/unit.h"
#include "report/write.h"
#include "study/result.h"
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

Result<results::StudyResult> WriteReportOf(const std::string& folder, const StoredStudy& stored,
                                           const StoredStudy* other) {
  const study::ResultInputs inputs{
      .study = stored.file, .design = stored.design, .journal = stored.journal, .options = {}};
  results::StudyResult result = study::MakeResult(inputs);
  if (other != nullptr)
    result.compared = study::CompareStudies(
        {.study = other->file, .design = other->design, .journal = other->journal, .options = {}}, inputs);
  TRY_STATUS(report::WriteStudyReport(result, folder));
  return result;
}

std::string AnswerText(const results::StudyResult& result, const std::string& folder) {
  const std::string& objective = result.study.metric;
  const report::Unit unit = report::UnitOf(objective);
  report::Table table{.columns = {"configuration", report::WithUnit(objective, unit.name), "n", "bottleneck"},
                      .text_columns = 1};
  for (size_t i = 0; i < result.configurations.size(); ++i) {
    const results::Figures* figures = result.FindFigures(i, objective);
    const auto bottleneck = result.CommonestWord(i, "bottleneck");
    table.rows.push_back({result.label(i), report::IntervalText(figures, unit.scale),
                          figures == nullptr ? "-" : fmt::format("{}", figures->n),
                          bottleneck ? bottleneck->word : "-"});
  }
  return report::ToText(report::AnswerSection(result)) + "\n" +
         report::ToText({.title = {}, .blocks = {std::move(table)}}) +
         fmt::format(
             "\nThe report: {0}/report.html, report.md; every trial: "
             "{0}/results.csv; by configuration: {0}/summary.csv\n",
             EscapeBytes(folder));
}

}  // namespace weir::cli
