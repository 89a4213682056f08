// The folder of a study: its file, its journal, and the report of both.
#pragma once

#include <string>

#include "base/error.h"
#include "results/study_result.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/study_file.h"

namespace weir::cli {

inline constexpr const char* kStudyFile = "study.yaml";
inline constexpr const char* kJournalFile = "journal.jsonl";
inline constexpr const char* kProvenanceFile = "provenance.json";

struct StoredStudy {
  study::StudyFile file;
  study::Design design;
  study::StudyJournal journal;
};
// kNotFound where `folder` holds no study, or no study file beside its journal; kCorrupt, with the line, for
// a damaged journal.
Result<StoredStudy> ReadStoredStudy(const std::string& folder);

// Writes the report of `folder`, beside `other` where that is no null; gives the result it was made of.
Result<results::StudyResult> WriteReportOf(const std::string& folder, const StoredStudy& stored,
                                           const StoredStudy* other);

// The answer and where the rest is, in a few lines.
std::string AnswerText(const results::StudyResult& result, const std::string& folder);

}  // namespace weir::cli
