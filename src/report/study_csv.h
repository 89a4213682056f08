// A study's result as tables for other programs. UTF-8, RFC 4180; an absent value is an
// empty field; numbers read back as the same doubles.
#pragma once

#include <string>

#include "results/study_result.h"

namespace weir::report {

// results.csv: a row for each try of each trial: id, place in the design, the level of each factor, verdict
// and reasons, every metric (Table 2 among them), the command that repeats it. A metric that is named as a
// column before it, or as the last one, is measured_NAME.
std::string ResultsCsv(const results::StudyResult& result);

// summary.csv: a row for each configuration: its factors, its trials by verdict, and of each metric NAME:n,
// mean, standard error and interval; of the objective also deviation, median with interval, and the ratio to
// the reference.
std::string SummaryCsv(const results::StudyResult& result);

}  // namespace weir::report
