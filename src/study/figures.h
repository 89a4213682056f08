// The charts of a study's report, as data: what is drawn, not how. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "study/analysis.h"
#include "study/design.h"
#include "study/study_file.h"

namespace weir::study {

struct ChartPoint {
  std::optional<double> x;  // of lines
  std::string name;         // of a bar: the configuration's label
  double mean = 0;
  std::optional<double> low, high;  // the interval of the mean
  int64_t n = 0;
  int64_t suspect = 0;  // of the n
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

// Those that the study asks for, or else: the objective over the factor of numbers with the most levels (the
// first of them), and all configurations side by side. Without figures where nothing was measured.
std::vector<ChartData> DrawFigures(const StudyFile& study, const Design& design, const Analysis& analysis);

Json ToJson(const ChartData& chart);

}  // namespace weir::study
