// A load that has been played, and its typed result. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/session/ceiling.h"
#include "load/session/level_result.h"
#include "load/session/options.h"
#include "load/session/run_levels.h"
#include "load/session/target.h"
#include "record/provenance.h"
#include "results/load_result.h"
#include "results/verdict.h"

namespace weir::load {

// A load that has been played. References outlive it.
struct LoadSummary {
  const LoadOptions& options;
  const Target& target;
  bool verbose = false;  // text has a line for each repeat
  LevelLength length;
  int batch = 1;
  LevelsOutcome outcome;
  bool interrupted = false;
  std::optional<Ceiling> ceiling;  // nullopt: not measured
};
results::LoadResult MakeResult(const LoadSummary& summary, const record::Provenance& provenance);

// Returns the causes of both claims, each once.
std::vector<results::Cause> CausesOf(const Claims& claims);

// Returns a quantile in milliseconds, if the number of samples supports it.
std::optional<double> QuantileMs(const stats::Histogram& histogram, double p);

// Returns half the 95 % interval of the mean response time: by batch means within one run, by the runs' means
// over several. Nullopt if there are too few.
std::optional<double> MeanHalfWidthMs(const LevelResult& level);

// Returns how much of the mean response time may lie outside of the server, in milliseconds.
double OutsideOfServerMs(const LevelResult& level);

// Returns the client's CPU time per answered request in microseconds.
double CpuMicroseconds(const LevelResult& level);

// Returns how many samples of --samples were lost.
int64_t SamplesLost(const LevelResult& level);

// Returns the throughput of each run.
std::vector<double> Throughputs(const LevelResult& level);

}  // namespace weir::load
