// The charts of a study's report, as data: what is drawn, not how. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "results/study_result.h"
#include "study/analysis.h"
#include "study/design.h"
#include "study/measured.h"
#include "study/study_file.h"

namespace weir::study {

using ChartData = results::ChartData;
using ChartSeries = ChartData::Series;
using ChartPoint = ChartData::Point;

// Whether a figure with this `where` (study_file.h) shows a configuration of these factors.
bool Shows(const std::vector<LevelLists>& where, const Json& factors);

// Returns the charts that the study asks for, or else: the objective over the factor of numbers with the most
// levels (the first of them) that varies by itself, and all configurations side by side, the best first. A
// chart with more than kMostSeries lines is split by a factor. Returns none where nothing was measured.
inline constexpr size_t kMostSeries = 6;
std::vector<ChartData> DrawFigures(const StudyFile& study, const Design& design, const Analysis& analysis,
                                   const Measured& measured);

// Returns the configurations that the answers rank, the best first, then the others; those with the metric.
std::vector<size_t> BestFirst(const Design& design, const Analysis& analysis, const std::string& metric);

// Returns the greatest memory over the batches in flight where those vary, else of each configuration.
std::vector<ChartData> DrawMemory(const Design& design, const Analysis& analysis);

// Returns the objective of the reference's trials over the blocks.
std::vector<ChartData> DrawStability(const Measured& measured, const std::string& metric);

}  // namespace weir::study
