// The trials of a search: played, tried once more where they fail, and kept in a journal, so that a search
// that was stopped or killed goes on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "record/journal.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/run.h"

namespace weir::advise {

inline constexpr const char* kSearchJournal = "search.jsonl";  // in the folder of the advice

// A trial is known by its id and its factors, not by the goal. So a search with another goal uses the trials
// of an earlier one. Not thread-safe.
class SearchTrials {
 public:
  // Keeps nothing on the disk. `clock` must outlive it.
  explicit SearchTrials(const Clock& clock) : clock_(&clock) {}

  // Opens the journal at `path`. kInvalidArgument and kCorrupt as study::OpenStudy.
  static Result<SearchTrials> Open(const std::string& path, const study::Header& header, study::Begin begin,
                                   const Clock& clock);

  // Returns the trial as the journal has it, or plays it and returns once it is on the disk. A trial that
  // fails is tried once more. So is one that is SUSPECT where it `judges`, until study::kMostVainReplays in a
  // row were SUSPECT again: the machine is then still disturbed. The better try counts. A trial that an
  // earlier run skipped is tried again: the missing part may be there now. Errors are the journal's.
  Result<study::PlayedTrials> Play(const study::Trial& trial, const Json& factors, const study::TrialFn& play,
                                   bool judges);

  int64_t known() const { return std::ssize(known_); }  // trials that an earlier run left

 private:
  Status Keep(const study::PlayedTrials& played);
  bool IsOver(const study::PlayedTrials& played, bool judges) const;
  study::PlayedTrials TryOnce(const study::Trial& trial, const Json& factors, int attempt,
                              const study::TrialFn& play) const;

  const Clock* clock_;
  std::optional<record::Journal> journal_;
  std::map<std::pair<std::string, std::string>, study::PlayedTrials> known_;  // by id and factors
  int vain_replays_ = 0;                                                      // in a row
};

}  // namespace weir::advise
