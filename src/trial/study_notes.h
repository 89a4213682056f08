// Texts about a study before and while it is played.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/text_style.h"
#include "study/analysis.h"
#include "study/design.h"
#include "study/run.h"
#include "study/study_file.h"
#include "trial/trial_runner.h"

namespace weir::trial {

// Returns the number of configurations, blocks and trials, and the combinations that are left out.
std::string DesignText(const TextStyle& style, const study::StudyFile& file, const study::Design& design);

// Returns the trials of a dry run in their order, a line each.
std::string TrialsText(const study::Design& design);

// Returns how many configurations this machine cannot play, and the remedy.
std::string InabilityText(const TrialRunner::Inability& inability, const study::Design& design);

// Returns the end of a progress line: the last configuration, failures, minutes left.
std::string ProgressText(const study::Progress& progress, const study::PlayedTrials& last,
                         const study::Design& design);

// Notes on what goes wrong in a study, each once. One thread at a time. `study` and `design` must outlive it.
class StudyNotes {
 public:
  StudyNotes(const study::StudyFile& study, const study::Design& design,
             std::function<void(const std::string&)> note);

  // Notes the parts of the study that this machine cannot play. Their trials do not repeat it.
  void Add(const std::vector<TrialRunner::Inability>& inabilities);

  // Notes the failure of a trial, and each metric that is missing from the first trial that should have it.
  // The second is early: otherwise the study would be played to its end before anyone notices.
  void Add(const study::PlayedTrials& played);

 private:
  void AddMissing(const study::PlayedTrials& played);

  const study::Design& design_;
  const std::function<void(const std::string&)> note_;
  std::set<std::string> noted_;
  std::vector<study::WantedMetric> wanted_;  // not yet looked for
};

}  // namespace weir::trial
