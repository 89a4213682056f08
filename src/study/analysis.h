// The analysis of a study's trials. Pure: a design and a journal's entries in, figures out. docs/results.md
// explains them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stats/median_interval.h"
#include "stats/summary.h"
#include "study/answer.h"
#include "study/comparison.h"
#include "study/design.h"
#include "study/drift.h"
#include "study/effects.h"
#include "study/entries.h"
#include "study/measured.h"
#include "study/next_bottleneck.h"
#include "study/phases.h"
#include "study/study_file.h"
#include "study/variance.h"
#include "study/waterfall.h"

namespace weir::study {

// One metric over the trials of one configuration that count.
struct Figures {
  std::string metric;
  stats::Summary summary;
  stats::MedianInterval median;
};

struct ConfigurationResult {
  Tally tally;
  std::vector<Figures> metrics;
  std::map<std::string, std::map<std::string, int64_t>> words;  // "bottleneck" to {"infer": 18, "decode": 2}
  std::string skipped_why;
  std::optional<NextBottleneck> bottleneck;
};

// Returns the figures of one metric; null if no trial that counts has it.
const Figures* FindFigures(const ConfigurationResult& result, std::string_view metric);

// A metric that the study file asks for: of all configurations, or of those that a figure shows.
struct WantedMetric {
  std::string metric;
  std::string wanted_by;
  std::vector<LevelLists> where;
};
std::vector<WantedMetric> WantedMetrics(const StudyFile& study);

// One that no trial has of those that count: a slip of the pen most often.
struct MissingMetric {
  std::string metric;
  std::string wanted_by;               // "objective", or "figure TITLE"
  std::optional<std::string> nearest;  // of those that there are
};

struct Analysis {
  std::vector<ConfigurationResult> configurations;  // as in the design
  // Over the reference, every metric. One family: the objective and the metrics of the figures, of all
  // configurations. Another: all other metrics.
  std::vector<Comparison> comparisons;
  std::vector<Effect> effects;                  // of the objective
  std::vector<ArchitecturePair> architectures;  // of the objective
  VarianceTable variance;                       // of the objective
  std::vector<OutlierTrial> outliers;           // of the objective
  std::string outliers_left_out;                // why they were not looked for; empty if they were
  std::optional<Waterfall> waterfall;           // absent where the study asks for none
  std::optional<PhaseTable> phases;             // absent where none run beside the client
  StudyDrift drift;                             // of the objective
  Answers answers;
  Tally tally;  // of all trials, references among them
  int64_t retried = 0;
  std::vector<MissingMetric> missing;  // nothing before a trial counts
};

Analysis Analyse(const StudyFile& study, const Design& design, std::span<const PlayedTrials> played,
                 const AnalysisOptions& options = {});

// The part.
std::vector<MissingMetric> FindMissing(std::span<const WantedMetric> wanted,
                                       const std::vector<std::string>& metrics);

}  // namespace weir::study
