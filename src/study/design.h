// From factors to trials: which combinations there are, and in which order they are tried. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "study/study_file.h"

namespace weir::study {

// The settings of a trial. Two combinations with the same effect are one configuration.
struct Configuration {
  Json factors = Json::object();  // level by factor; one that is not applicable is absent
  bool waterfall_only = false;    // a step of the waterfall that the study does not compare
  std::string label;  // the levels that vary: "microservice, grpc, batch 8"; of a star those off its base
};

// A combination as the study file spells it out, before the rules.
struct Combination {
  Json factors = Json::object();
  std::optional<size_t> configuration;  // what it comes to; nothing where it was dropped
  std::vector<std::string> changes;     // what the rules took away, with the reason
  std::string dropped;                  // why it was
};

enum class Role {
  kTrial,
  kReferenceStart,  // of the reference configuration, at these places of the block: the drift control
  kReferenceMiddle,
  kReferenceEnd,
};
std::string_view ToString(Role role);  // "trial", "reference-start", ...
std::optional<Role> ParseRole(std::string_view text);

struct Trial {
  size_t configuration = 0;
  int block = 0;     // from 0
  int position = 0;  // in the block, from 0
  Role role = Role::kTrial;
  uint64_t seed = 0;  // of all chance in the trial: another in each block, the same within one
  std::string id;     // hash of configuration, block and role: what a resumed study knows it by
  bool is_reference() const { return role != Role::kTrial; }
};

// A step of the waterfall (study/waterfall.h).
struct PlannedStep {
  std::string name, change;
  size_t configuration = 0;
};

struct Design {
  std::vector<Combination> combinations;
  std::vector<Configuration> configurations;
  std::vector<Trial> trials;  // in the order in which they are played
  size_t reference = 0;       // configuration of the drift control, and of the comparisons
  int blocks = 0;
  std::vector<PlannedStep> waterfall;  // in its order; empty where the study asks for none
  std::string unnamed;                 // what labels leave out: the base's levels, of a star
};

// Randomised complete blocks: each holds every configuration once, shuffled by the seed, and the reference
// before, amid and behind them. The same file gives the same design, in whatever order its keys stand.
// kInvalidArgument where nothing is left, or there are more than 100,000 combinations or 1,000,000 trials, or
// trials read data and the study names none.
Result<Design> MakeDesign(const StudyFile& study);

// Pictures that a trial of this configuration answers: what the length asks for, and at least its batches,
// all of them full, besides those in flight at the start. Nothing for a length in seconds, and for passes
// over data of unknown size. `set_images`: pictures in the data set, where it is known.
std::optional<int64_t> ImagesPerTrial(const TrialLength& length, const Configuration& configuration,
                                      std::optional<int64_t> set_images);

// The first trial of the reference, and of one configuration of each architecture: each configuration once.
std::vector<Trial> PilotTrials(const Design& design);

// Seconds that the trials not in `done` (ids) will take, from what a trial of each configuration took in a
// pilot or so far; configurations that were not tried count as the mean of the others. Nothing where none
// was.
std::optional<double> TimeNeeded(const Design& design,
                                 std::span<const std::optional<double>> seconds_by_configuration,
                                 std::span<const std::string> done = {});

}  // namespace weir::study
