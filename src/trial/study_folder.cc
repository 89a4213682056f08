#include "trial/study_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "record/journal.h"
#include "report/study_report.h"
#include "report/write.h"
#include "study/result.h"
#include "study/two_studies.h"

namespace weir::trial {

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

}  // namespace weir::trial
