// The study's answer: the best configuration that its trials support, or why they support none. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/comparison.h"
#include "study/design.h"
#include "study/measured.h"
#include "study/study_file.h"

namespace weir::study {

// By the last try of each trial.
struct Tally {
  int64_t valid = 0, suspect = 0, invalid = 0, failed = 0, skipped = 0;
  int64_t played() const { return valid + suspect + invalid + failed; }
  bool mostly_valid() const { return 2 * valid > played(); }
};

// Whether a configuration's engine is emulated. `words`: its metrics of words.
bool IsEmulated(const Configuration& configuration);

enum class TargetStanding { kMet, kMissed, kUndecided, kNotMeasured };
std::string_view ToString(TargetStanding standing);  // "met", "missed", "undecided", "not measured"

// Compares the interval of a metric's mean with a limit: it lies wholly on one side, or says nothing.
TargetStanding JudgeTarget(const Measured& measured, size_t configuration, const std::string& metric,
                           double limit, bool at_most, const AnalysisOptions& options);

struct TargetStandings {
  std::optional<TargetStanding> p99, rate;
  bool all_met() const {
    return p99.value_or(TargetStanding::kMet) == TargetStanding::kMet &&
           rate.value_or(TargetStanding::kMet) == TargetStanding::kMet;
  }
};
TargetStandings JudgeTargets(const Measured& measured, size_t configuration, const Targets& targets,
                             const AnalysisOptions& options);

// Returns the price of an hour of a configuration; nullopt where the study gives none.
std::optional<double> PricePerHour(const Targets& targets, const Configuration& configuration);

// A ranking of configurations whose trials are VALID for the most part and that meet every target.
struct Answer {
  std::string among;      // "real engines" or "emulated accelerators" where the study has both; else empty
  std::string ranked_by;  // the objective's metric, or "price_per_million_images" where all have a price
  size_t best = 0;
  double mean = 0;                 // of the objective
  std::vector<Comparison> others;  // each other one over the best, from the best on, in one family
};

struct Answers {
  std::vector<Answer> answers;  // real engines first; at most one of each kind
  std::string none;             // why there is none; empty with one
};

Answers FindAnswers(const StudyFile& study, const Design& design, const Measured& measured,
                    const std::vector<Tally>& tallies, std::span<const PlayedTrials> played,
                    const AnalysisOptions& options);

}  // namespace weir::study
