// The effects of the factors: over all, and level by level of the others. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "study/comparison.h"
#include "study/design.h"
#include "study/measured.h"
#include "study/study_file.h"

namespace weir::study {

// A factor's effect among the pairs in which another factor has one level.
struct LevelEffect : Tested {
  std::string other;  // a factor
  Json level;         // null where the other factor is not applicable
  int64_t pairs = 0;
};

enum class Acts {
  kAlike,     // no interaction is shown
  kByLevel,   // its ratio depends on another factor's level: read it level by level
  kOpposite,  // some pairs are significantly higher, others significantly lower
};
std::string_view ToString(Acts acts);  // "alike", "differently by level", "in opposite directions"

// The effect of a factor: all pairs of configurations that differ in it alone, the geometric mean of their
// ratios in each block. The n of the ratio are the blocks in which every pair counts.
struct Effect : Tested {
  std::string factor;
  Json from, to;  // levels; the ratio is `to` over `from`
  std::string metric;
  int64_t pairs = 0;              // of configurations
  std::vector<Comparison> each;   // the pairs; one family over all factors
  int64_t higher = 0, lower = 0;  // of the pairs, significantly
  Acts acts = Acts::kAlike;
  std::vector<LevelEffect> by_level;  // of the factors that it interacts with; empty where it acts alike
};

// Two levels of the architecture at equal other levels. The ratio is `to` over `from`.
struct ArchitecturePair : Comparison {
  Json from, to;
  std::string at;  // the other levels that vary, in words
};

// Pairs of factors that interact significantly, by the analysis of variance.
using Interactions = std::vector<std::pair<std::string, std::string>>;

std::vector<Effect> FindEffects(const StudyFile& study, const Design& design, const Measured& measured,
                                const Interactions& interactions, const AnalysisOptions& options);

// Returns every pair of architectures at equal other levels, in one family.
std::vector<ArchitecturePair> CompareArchitectures(const StudyFile& study, const Design& design,
                                                   const Measured& measured, const AnalysisOptions& options);

}  // namespace weir::study
