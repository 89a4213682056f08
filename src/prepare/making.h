// The sets that are being made: written to in the order of the inputs, gone on with where they were left.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "dataset/hash.h"
#include "dataset/set.h"
#include "dataset/set_writer.h"
#include "prepare/checkpoint.h"
#include "prepare/known_contents.h"
#include "prepare/prepare.h"

namespace weir::prepare {

// One set of a work: where it lies, and what it will say of itself.
struct SetToMake {
  std::string folder;
  dataset::SetFacts facts;
};

// The whole work, as far as it is known before a picture is read.
struct Job {
  std::string folder;  // of the journal: the set's own, or that of all variations
  std::vector<SetToMake> sets;
  std::vector<uint8_t> plan;   // the share of each input, other parts' too; empty: no shares
  size_t shares = 1;           // sets of each variation, which follow one another in `sets`
  int64_t first = 0, end = 0;  // inputs
  Json head;                   // what the sets depend on, but for the inputs: the journal's first line
};
// `feed` is as it was before any part was split off.
Job MakeJob(const Feed& feed, const Options& options);

// The facts of the sets where all of them are finished; nullopt where any is not. kInvalidArgument where a
// finished one was made with other options, or of other inputs.
Result<std::optional<std::vector<dataset::SetFacts>>> FindFinished(const Job& job);

// One thread at a time, but for the checkpoints' own.
class Making {
 public:
  // Begins the sets, or goes on with them: from the last checkpoint whose files are all there, and whose
  // inputs are still the first of `feed`, in the state they had then. All arguments must outlive it.
  static Result<std::unique_ptr<Making>> Open(const Job& job, const Feed& feed, const Options& options,
                                              const Clock& clock,
                                              const std::function<void(const Progress&)>& progress);

  int64_t next() const { return next_; }  // the first input that is not in the sets
  const StageTimes& times() const { return times_; }
  int64_t bytes_in() const { return state_.bytes_in; }
  int64_t accepted() const { return accepted_; }  // inputs that went into a set, by this object
  int64_t made_again() const {
    return made_again_;
  }  // inputs of the last checkpoint that were not gone on with

  // Input `next()`.
  Status Write(const Outcome& outcome);
  // Copies in turn until each set has as many pictures as were asked for.
  Status Replicate(const std::stop_token& stop);
  // Tells how far it is, so that the next call goes on from here; for the end of a call that could not
  // finish.
  Status Keep();
  Result<std::vector<dataset::SetFacts>> Finish();

 private:
  Making(const Job& job, const Feed& feed, const Options& options, const Clock& clock,
         const std::function<void(const Progress&)>& progress)
      : job_(job), feed_(feed), options_(options), clock_(clock), progress_(progress) {}

  Status Begin();
  std::vector<std::string> HashesUpTo(const std::vector<Checkpoint>& checkpoints) const;
  Checkpoint LastGood(const std::vector<Checkpoint>& found) const;
  size_t ShareOf(const Outcome& outcome) const;
  Status AddDuplicate(const Outcome& outcome, const KnownContents::Place& twin);
  Status AddToShare(const Outcome& outcome, size_t share);
  Status WriteTo(dataset::SetWriter& writer, const Outcome& outcome, const image::Accepted<Made>& made);
  Status ReplicateIn(size_t set, const std::stop_token& stop);
  Status KeepWhenDue();
  Status Post();
  void Tell();

  const Job& job_;
  const Feed& feed_;
  const Options& options_;
  const Clock& clock_;
  const std::function<void(const Progress&)>& progress_;
  std::vector<dataset::SetWriter> writers_;
  std::vector<int64_t> originals_;  // of each set, once copies have begun
  KnownContents known_;
  int64_t next_ = 0;
  dataset::StreamHash inputs_;  // of the descriptions and states before next_
  Progress state_;
  int64_t accepted_ = 0, made_again_ = 0;
  StageTimes times_;
  Instant kept_;
  std::unique_ptr<Checkpoints> checkpoints_;  // last: it settles what the writers wrote
};

}  // namespace weir::prepare
