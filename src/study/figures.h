// The charts of a study's report, as data: what is drawn, not how. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "study/analysis.h"
#include "study/design.h"
#include "study/measured.h"
#include "study/study_file.h"

namespace weir::study {

struct ChartTrial {
  double value = 0;
  bool suspect = false;
};

struct ChartPoint {
  std::optional<double> x;  // of lines
  std::string name;         // of a bar: the configuration's label
  double mean = 0;
  std::optional<double> low, high;  // the interval of the mean
  int64_t n = 0;
  int64_t suspect = 0;             // of the n
  std::vector<ChartTrial> trials;  // each by itself, where they are at most ten
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;  // by rising x; bars in the order of the design
};

struct ChartData {
  std::string title;
  std::string metric;
  std::string x;  // the factor; empty: bars
  std::vector<ChartSeries> series;
};

// Whether a figure with this `where` (study_file.h) shows a configuration of these factors.
bool Shows(const std::vector<LevelLists>& where, const Json& factors);

// Returns the charts that the study asks for, or else: the objective over the factor of numbers with the most
// levels (the first of them) that varies by itself, and all configurations side by side, the best first. A
// chart with more than kMostSeries lines is split by a factor. Returns none where nothing was measured.
inline constexpr size_t kMostSeries = 6;
std::vector<ChartData> DrawFigures(const StudyFile& study, const Design& design, const Analysis& analysis,
                                   const Measured& measured);

// Returns the percentiles of the response time of the best configurations, where trials have any.
std::vector<ChartData> DrawLatency(const Design& design, const Analysis& analysis);

// Returns the greatest memory over the batches in flight where those vary, else of each configuration.
std::vector<ChartData> DrawMemory(const Design& design, const Analysis& analysis);

// Returns the objective of the reference's trials over the blocks.
std::vector<ChartData> DrawStability(const Measured& measured, const std::string& metric);

Json ToJson(const ChartData& chart);

}  // namespace weir::study
