// Plays levels against a target and judges them.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/console.h"
#include "cli/load_ceiling.h"
#include "cli/load_flags.h"
#include "cli/load_result.h"
#include "cli/load_target.h"
#include "load/generator/generator.h"
#include "load/validate/sample_file.h"
#include "load/verdict/judge.h"

namespace weir::cli {

// One thread at a time. All that it is given must outlive it.
class LoadSession {
 public:
  // `probe`: some of the requests as they were before the target prepared them; they go to the null server.
  LoadSession(const LoadFlags& flags, LoadTarget& target, const load::Requests& requests,
              std::vector<infer::Request> probe, const Clock& clock, Console& console,
              const std::stop_token& stop);

  // `number`: of the level, from 0. `seed`: another one for each run that is to be a fresh one.
  Result<LevelResult> PlayLevel(const LoadLevel& level, const LoadLength& length, int number, Seed seed);
  Status KeepSamples(const std::vector<LoadLevel>& levels);
  Status Finish() { return samples_ ? samples_->Finish() : Status{}; }

  // What the generator itself can do with these requests: found out once, when first asked for. Nothing
  // where that cannot be found out; then the console has said why.
  const std::optional<Ceiling>& MeasuredCeiling();
  // As found out so far.
  const std::optional<Ceiling>& ceiling() const { return ceiling_; }

 private:
  // What the server has counted, and our requests as the question left and as its answer came.
  struct Look {
    infer::PhaseTotals totals;
    load::RequestsSoFar asked, told;
  };
  std::optional<Look> LookAtServer(const load::RequestCounter& so_far);
  static void AddServerCounts(const std::optional<Look>& before, const std::optional<Look>& after,
                              LevelResult& result);
  Result<load::RunOutcome> PlayOnce(LevelResult& result, const LoadLength& length, int number, int repeat,
                                    Seed seed);
  load::Environment EnvironmentOf(const LevelResult& result, const load::RunOutcome& played);
  void JudgeSpread(LevelResult& result) const;
  void AnswerThreshold(LevelResult& result) const;

  const LoadFlags& flags_;
  LoadTarget& target_;
  const load::Requests& requests_;
  const std::vector<infer::Request> probe_;
  const Clock& clock_;
  Console& console_;
  const std::stop_token& stop_;
  const int cpus_;
  load::RequestsSoFar earlier_;  // requests of the runs before
  bool asked_for_ceiling_ = false;
  std::optional<Ceiling> ceiling_;
  std::unique_ptr<load::SampleFile> samples_;
};

}  // namespace weir::cli
