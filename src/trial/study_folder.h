// The folder of a study: its file, its journal, and its report.
#pragma once

#include <string>

#include "base/error.h"
#include "results/study_result.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/study_file.h"

namespace weir::trial {

inline constexpr const char* kStudyFile = "study.yaml";
inline constexpr const char* kJournalFile = "journal.jsonl";
inline constexpr const char* kProvenanceFile = "provenance.json";

struct StoredStudy {
  study::StudyFile file;
  study::Design design;
  study::StudyJournal journal;
};
// Reads the study in `folder`. kNotFound if it holds no study, or no study file beside its journal;
// kCorrupt, with the line, if the journal is damaged.
Result<StoredStudy> ReadStoredStudy(const std::string& folder);

// Writes the report of `folder`, compared with `other` unless that is null. Returns the result behind it.
Result<results::StudyResult> WriteReportOf(const std::string& folder, const StoredStudy& stored,
                                           const StoredStudy* other);

}  // namespace weir::trial
