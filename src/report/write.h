// Puts a study's report beside its journal.
#pragma once

#include <string>

#include "base/error.h"
#include "results/study_result.h"

namespace weir::report {

// report.html, report.md, report.json (the result itself), results.csv and summary.csv in `folder`, each
// whole or as it was before. kIo and the like name the file.
Status WriteStudyReport(const results::StudyResult& result, const std::string& folder);

}  // namespace weir::report
