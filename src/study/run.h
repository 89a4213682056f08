// The loop of a study: plays what its journal does not hold yet. What a trial does is the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "record/journal.h"
#include "results/trial_result.h"
#include "study/design.h"
#include "study/entries.h"

namespace weir::study {

// Plays one trial to its end and leaves nothing behind. The Record's factors are filled in by the loop. An
// error fails the trial, but kUnsupported: this machine cannot, and the configuration is skipped, with the
// message.
using TrialFn = std::function<Result<results::TrialResult>(const Trial& trial)>;

struct Progress {
  int64_t done = 0, total = 0;  // trials; those of an earlier run count as done
  int64_t failed = 0;           // trials whose last try failed
  int64_t skipped = 0;
  std::optional<double> left_s;  // at the pace so far; nothing before the first trial
};
using ProgressFn = std::function<void(const Progress& progress, const PlayedTrials& last)>;

enum class Ending { kDone, kStopped };

// When trials that are SUSPECT after their first try are played once more, at the end.
enum class Replay {
  kNever,
  kAfterNewTrials,  // if this run has played a trial that the journal did not have
  kAlways,
};

struct RunInputs {
  const Design& design;
  TrialFn play;
  std::function<void(const Trial&)> before;  // called before each try, outside its time; may be empty
  ProgressFn progress;                       // may be empty
  std::stop_token stop;
  const Clock& clock;
  Replay replay = Replay::kAfterNewTrials;
};

// Checks that a journal fits the study that resumes it: kInvalidArgument with every difference of
// host, build and study file, a line each, and the remedy.
Status CheckSame(const Header& before, const Header& now);

// Opens the journal of a study that begins or, with `resume`, goes on; its first line is written or checked.
// kInvalidArgument where one is there and resume is not asked for, and as CheckSame.
struct Opened {
  record::Journal journal;
  StudyJournal so_far;
};
enum class Begin { kNew, kResume };
Result<Opened> OpenStudy(const std::string& path, const Header& header, Begin begin);

inline constexpr int kMostVainReplays = 3;

// Plays, in the design's order, every trial that `so_far` does not hold, or holds as skipped; a trial that
// failed once is tried once more, at once, and both tries are recorded. A trial that is skipped again for the
// same reason is not recorded again. A trial is recorded, and waited for until it is on the
// disk, before the next one begins: a kill at any moment loses the trial under way, which then is not in the
// journal. At the end trials that are SUSPECT are played once more, until kMostVainReplays in a row are
// SUSPECT again: the machine is then still disturbed. A stop lets the trial under way end and keeps it.
// Blocks the caller; `play` runs on its thread. Errors are the journal's.
Result<Ending> PlayStudy(const RunInputs& inputs, record::Journal& journal,
                         std::span<const PlayedTrials> so_far);

}  // namespace weir::study
