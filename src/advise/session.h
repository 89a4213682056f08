// One weir advise: from a study's folder, or by new trials of a study file, to the advice and its files.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "advise/accelerators.h"
#include "advise/goal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text_style.h"
#include "results/advice_result.h"
#include "study/study_file.h"
#include "trial/study_session.h"

namespace weir::advise {

struct AdviseRequest {
  std::string source;  // a study's folder, or a study file whose configurations are searched by new trials
  std::string folder;  // for advice.json and the files; empty: none are written
  Objective objective = Objective::kThroughput;
  std::vector<std::string> targets, prices;  // as the user wrote them
  std::optional<double> rate;                // images/s that all instances together must answer
  std::string image = "localhost/weir";      // container image of the server
  bool image_given = false;                  // false: the files name the study's image
  bool resume = false;                       // continues the search in `folder`
  std::vector<std::string> command;          // the command line, for the provenance
  AskedAccelerators accelerators;
};

struct AdviseEnd {
  results::AdviceResult advice;
  std::string text;          // for people
  bool interrupted = false;  // before an answer; the rest is then empty
  bool has_best = false;     // some configuration meets the targets
};

// Returns the goal of the flags over that of the study file. kInvalidArgument names the target or the price
// that cannot be read.
Result<Goal> GoalOf(const AdviseRequest& request, const study::Targets& study);

// Decides, and writes the files. Plays new trials where `source` is a study file. Blocks. kInvalidArgument
// for flags that do not go together.
Result<AdviseEnd> Advise(const AdviseRequest& request, const TextStyle& style, const Clock& clock,
                         const std::stop_token& stop, const trial::StudyHooks& hooks);

}  // namespace weir::advise
