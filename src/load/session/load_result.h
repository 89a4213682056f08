// The typed result of a load, made from its levels. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/session/ceiling.h"
#include "load/session/level_result.h"
#include "load/session/options.h"
#include "load/session/run_levels.h"
#include "record/verdict.h"
#include "results/load_result.h"

namespace weir::load {

struct ResultParts {
  std::string model, protocol;
  int batch = 1;
  const LevelsOutcome& outcome;
  std::optional<Ceiling> ceiling;  // nullopt: not measured
  bool interrupted = false;
  Json provenance;
};
results::LoadResult MakeResult(const LoadOptions& options, const ResultParts& parts);

// Returns the causes of both claims, each once.
std::vector<record::Cause> CausesOf(const Claims& claims);

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
