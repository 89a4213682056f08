// Whether trials are long enough for the figures that a study wants of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "study/design.h"
#include "study/study_file.h"

namespace weir::study {

// Requests that a p99 with an interval needs: ten beyond it (stats::Supports).
inline constexpr int64_t kRequestsForP99 = 1000;
// Seconds below which a trial has too few samples to say what the machine did (kShortestForForeign gives the
// least at all); a rate over less than a second also hides pauses of the machine.
inline constexpr double kShortestTrial = 1;

// Whether a target, the objective or a figure is a p99.
bool WantsP99(const StudyFile& study);

// Returns the response times that each trial measures at least: those of the study file, and kRequestsForP99
// where the study wants a p99. nullopt where none are asked for.
std::optional<int64_t> ResponsesPerTrial(const StudyFile& study);

// Returns the length of a trial of the load generator: that of the study file, lengthened to its response
// times.
int64_t RequestsPerTrial(const StudyFile& study, int64_t images, int batch);

// Returns what the design alone tells before the first trial, each once.
std::vector<std::string> LengthWarnings(const StudyFile& study, const Design& design);

// Returns a warning if the pilot run of a configuration was measured for less than kShortestTrial, with the
// length that would do; `metrics` are its record's.
std::optional<std::string> PilotWarning(const StudyFile& study, const Configuration& configuration,
                                        const Json& metrics);

}  // namespace weir::study
