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

#include "stats/line.h"
#include "stats/median_interval.h"
#include "stats/paired.h"
#include "stats/steady_state.h"
#include "stats/summary.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/measured.h"
#include "study/study_file.h"

namespace weir::study {

struct AnalysisOptions {
  double confidence = 0.95;
  double margin = 0.03;              // relative: a smaller gain is no reason to choose
  double alpha = 0.05, power = 0.8;  // of the smallest difference that could have been seen
};

// One metric over the trials of one configuration that count.
struct Figures {
  std::string metric;
  stats::Summary summary;
  stats::MedianInterval median;
};

// By the last try of each.
struct Tally {
  int64_t valid = 0, suspect = 0, invalid = 0, failed = 0, skipped = 0;
};

enum class Told {
  kHigher,   // the interval excludes 1, and the difference is above the margin
  kLower,    // likewise
  kSmall,    // the interval excludes 1, but the difference is not above the margin
  kNothing,  // the interval holds 1: no difference shown
  kTooFew,   // no interval: fewer than two pairs
};
std::string_view ToString(
    Told told);  // "higher", "lower", "small difference", "no difference shown", "too few"

// Two configurations, paired in blocks.
struct Comparison {
  size_t configuration = 0, against = 0;
  std::string metric;
  stats::Ratio ratio;  // configuration over against
  Told told = Told::kTooFew;
  std::optional<double> smallest_difference;  // relative, that could have been seen with these blocks
};

struct ConfigurationResult {
  Tally tally;
  std::vector<Figures> metrics;
  std::map<std::string, std::map<std::string, int64_t>> words;  // "bottleneck" to {"infer": 18, "decode": 2}
  std::string skipped_why;
};

// Returns the figures of one metric; null if no trial that counts has it.
const Figures* FindFigures(const ConfigurationResult& result, std::string_view metric);

// The effect of a factor: all pairs of configurations that differ in it alone, the geometric mean of their
// ratios in each block.
struct Effect {
  std::string factor;
  Json from, to;  // levels
  std::string metric;
  int64_t pairs = 0;   // of configurations
  stats::Ratio ratio;  // `to` over `from`; its n are the blocks in which every pair counts
  Told told = Told::kTooFew;
};

// The drift of the reference configuration while the study lasted. Relative figures.
struct StudyDrift {
  std::string metric;
  int64_t blocks = 0;  // with at least one reference trial that counts
  std::optional<double> change, low,
      high;  // from the first block to the last, by a line through the blocks' means
  std::optional<stats::Ratio> within_block;  // at a block's end over its start
  std::optional<stats::Trend> trend;         // over the blocks
  std::vector<int> restless;  // blocks whose mean is more than the margin off the middle of all
  bool flagged =
      false;  // some block is restless, or the change is above the margin and its interval excludes 0
};

// The best configuration by the objective of those that have a VALID trial (of all, where none has), and
// which of the others may be as good.
struct Answer {
  size_t best = 0;
  double mean = 0;
  std::vector<Comparison> others;  // each other one over the best, from the best on; of those with figures
};

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
  std::vector<Comparison> comparisons;              // over the reference, every metric
  std::vector<Effect> effects;                      // of the objective
  StudyDrift drift;                                 // of the objective
  std::optional<Answer> answer;                     // nothing before a trial counts
  Tally tally;                                      // of all trials, references among them
  int64_t retried = 0;
  std::vector<MissingMetric> missing;  // nothing before a trial counts
};

Analysis Analyse(const StudyFile& study, const Design& design, std::span<const PlayedTrials> played,
                 const AnalysisOptions& options = {});

// The parts.
std::optional<Comparison> Compare(const Measured& measured, size_t configuration, size_t against,
                                  const std::string& metric, const AnalysisOptions& options);
std::vector<MissingMetric> FindMissing(std::span<const WantedMetric> wanted,
                                       const std::vector<std::string>& metrics);
std::vector<Effect> FindEffects(const StudyFile& study, const Design& design, const Measured& measured,
                                const AnalysisOptions& options);
StudyDrift FindStudyDrift(const Measured& measured, const std::string& metric,
                          const AnalysisOptions& options);
Told Tell(const stats::Ratio& ratio, const AnalysisOptions& options);

}  // namespace weir::study
