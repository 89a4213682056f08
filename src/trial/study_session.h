// A study from its file to its report: a dry run, or all trials into a folder.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "results/study_result.h"
#include "study/design.h"
#include "study/run.h"
#include "study/study_file.h"
#include "trial/trial_runner.h"

namespace weir::trial {

struct StudyRequest {
  std::string file;                      // the study file
  std::string model, data;               // in the place of the study's; empty: its own
  std::string folder;                    // for the journal and the report; empty for a dry run
  std::string image = "localhost/weir";  // container image of weir's server
  bool builds_image = true;              // builds `image` if a trial needs it and it is missing
  bool resume = false;                   // continues the study in `folder`
  bool waterfall = false;                // adds the steps of the waterfall to the study
  bool replay = true;                    // plays SUSPECT trials once more at the end
  std::string wait_quiet;                // longest wait for a quiet machine, as in 10m; empty: none
  std::string live;                      // HOST:PORT of a page while the study runs; empty: none
  std::vector<std::string> command;      // the command line, for the provenance
};

// Receives what the person at the terminal should see. All are called on the thread that plays the study.
struct StudyHooks {
  std::function<void(const std::string&)> note;
  std::function<void(double elapsed_s, int64_t done, int64_t total, const std::string& extra)> progress;
  std::function<void()> progress_ended;
};

struct PlannedStudy {
  std::string text;  // of the study file, with the model, the data and the waterfall that were requested
  study::StudyFile file;
  study::Design design;
};

// Reads the study file and makes its design. kInvalidArgument, with the line, for a fault of the file or of
// `wait_quiet`; kNotFound if `resume` is set and the folder is absent.
Result<PlannedStudy> PlanStudy(const StudyRequest& request);

// Returns the options of a TrialRunner that keeps its data in `folder`, relative to the current folder or
// absolute. `study_file` is the file whose names are looked up beside it.
Result<TrialRunner::Options> MakeRunnerOptions(const std::string& folder, const std::string& image,
                                               const std::string& study_file);

// Returns the facts that must not change when a study, or a search over one, resumes. kNotFound and others
// where the model or the data cannot be read. `command` is the command line.
Result<Json> CollectStudyProvenance(const std::vector<std::string>& command, uint64_t seed,
                                    TrialRunner& runner);

struct DryRunResult {
  results::StudyDesign design;  // with the time needed, if a pilot trial succeeded
  int64_t pilots = 0;           // pilot trials that succeeded
  bool any_failed = false;      // a pilot failed that a study would not skip
};
// Plays a few pilot trials in a temporary folder and keeps nothing. Blocks.
Result<DryRunResult> PlayDryRun(const StudyRequest& request, const PlannedStudy& plan, const Clock& clock,
                                const std::stop_token& stop, const StudyHooks& hooks);

struct StudyEnd {
  results::StudyResult result;
  study::Ending ending = study::Ending::kDone;
  bool has_figures() const;  // some configuration has a figure of the objective
};
// Plays the trials that the folder's journal does not hold, and writes the report. Blocks. kInvalidArgument
// if the folder holds another study, or holds one and `resume` is not set.
Result<StudyEnd> PlayStudyInFolder(const StudyRequest& request, const PlannedStudy& plan, const Clock& clock,
                                   const std::stop_token& stop, const StudyHooks& hooks);

// Seconds that a pilot trial of each configuration took. nullopt for configurations that were not tried or
// failed. Pure but for `play`.
struct Pilot {
  std::vector<std::optional<double>> seconds;
  bool any_failed = false;  // an error that is no kUnsupported
};
// Plays the pilot trials of `design` until `stop`. `inabilities` are noted first. A reason is noted once.
Pilot PlayPilot(const study::Design& design, const std::vector<TrialRunner::Inability>& inabilities,
                const study::TrialFn& play, const Clock& clock, const std::stop_token& stop,
                const std::function<void(const std::string&)>& note);

}  // namespace weir::trial
