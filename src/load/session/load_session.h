// Plays levels against a target and judges them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "load/generator/generator.h"
#include "load/session/ceiling.h"
#include "load/session/level.h"
#include "load/session/level_result.h"
#include "load/session/options.h"
#include "load/session/session_requests.h"
#include "load/session/target.h"
#include "load/validate/sample_file.h"
#include "monitor/server_watch.h"

namespace weir::load {

// A session's surroundings. All are called on the thread that plays, none while a request waits for it. An
// empty function is not called.
struct SessionHooks {
  NoteSink note;
  std::function<void(const Level& level, const Progress& progress)> progress;
  std::function<void()> progress_ended;
  // Measures the generator's own ceiling; called once at most. Empty: it cannot be measured, as for a target
  // in this process.
  std::function<Result<Ceiling>()> measure_ceiling;
  monitor::ServerAccess server;  // for options.server
  // Blocks until a run may begin, and returns the moment from which it counts. Empty: at once.
  std::function<std::optional<Instant>()> begin;
};

// The verdicts that need all repeats, those of all hosts: the percentile, other clients of the server, the
// spread, the threshold.
void JudgeLevel(const LoadOptions& options, LevelResult& result);

// One thread at a time. All references must outlive it.
class LoadSession {
 public:
  LoadSession(const LoadOptions& options, Target& target, const Requests& requests, const Clock& clock,
              SessionHooks hooks, const std::stop_token& stop);

  // Plays one level with all its repeats. `number` counts the levels, from 0. A fresh run of the same level
  // needs another `seed`. Errors are those of playing, of watching the server and of writing samples.
  Result<LevelResult> PlayLevel(const Level& level, const LevelLength& length, int number, Seed seed);
  // The same without JudgeLevel.
  Result<LevelResult> PlayRepeats(const Level& level, const LevelLength& length, int number, Seed seed);
  // Opens options.samples, if any, for the samples of these levels. Call it before PlayLevel.
  Status KeepSamples(const std::vector<Level>& levels);
  // Completes the file of samples.
  Status Finish() { return samples_ ? samples_->Finish() : Status{}; }

  // The generator's ceiling as measured so far; nullopt if it was not needed or could not be measured.
  const std::optional<Ceiling>& ceiling() const { return ceiling_; }

 private:
  // The server's counts, and our requests before they were asked for and after they came.
  struct CountedRequests {
    infer::PhaseTotals totals;
    RequestsSoFar asked, told;
  };
  std::optional<CountedRequests> CountAtServer(const RequestCounter& so_far);
  static void AddServerCounts(const std::optional<CountedRequests>& before,
                              const std::optional<CountedRequests>& after, LevelResult& result);
  Result<RunOutcome> PlayOnce(LevelResult& result, const LevelLength& length, int number, int repeat,
                              Seed seed);
  Environment EnvironmentOf(const LevelResult& result, const RunOutcome& played);
  const std::optional<Ceiling>& MeasuredCeiling();

  const LoadOptions& options_;
  Target& target_;
  const Requests& requests_;
  const Clock& clock_;
  const SessionHooks hooks_;
  const std::stop_token& stop_;
  const int cpus_;
  RequestsSoFar earlier_;  // requests of the runs before
  bool asked_for_ceiling_ = false;
  std::optional<Ceiling> ceiling_;
  std::unique_ptr<SampleFile> samples_;
};

}  // namespace weir::load
