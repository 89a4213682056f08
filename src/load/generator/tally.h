// Sums over the requests of one run, updated as they end. Bounded memory: histograms, never a list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "infer/call.h"
#include "load/generator/rate_trace.h"
#include "load/generator/sample.h"
#include "load/generator/series.h"
#include "load/verdict/split.h"
#include "stats/histogram.h"

namespace weir::load {

constexpr Duration kLate = 1ms;  // a request that left so much after it could have is late

// A value; Generator guards it while a run goes on. Times in nanoseconds.
struct Tally {
  std::array<int64_t, kOutcomes> ended{};  // measured requests, by outcome
  // Answered requests only.
  stats::Histogram response, service;
  stats::Histogram send;        // where it is known
  stats::Histogram first_byte;  // since it was sent
  stats::Histogram slip;        // of all that were sent; a request sent early (a clock step) counts 0
  SplitSums split;              // of answered requests whose server told where its time went
  int64_t late = 0;             // sent more than 1 ms after the plan
  // Over the measured time, by the moment of the plan and of the end.
  Series response_series;               // seconds of answered requests
  Series done_series;                   // answers
  double empty_seconds = 0;             // Ledger::Plan's `empty` of measured requests, where it is over kLate
  int64_t left = 0;                     // requests that ended within it
  std::optional<TraceWindows> windows;  // of a trace
  int64_t answered_within = 0;          // answers that came within it: what throughput is counted from

  // `from`: the start of the measured time. `server`: what it told with the answer, where it did.
  void Add(const Sample& sample, Instant from,
           const std::optional<infer::ServerDurations>& server = std::nullopt);
  void Merge(const Tally& more);  // the series are not merged: they belong to one run

  int64_t of(Outcome outcome) const { return ended[static_cast<size_t>(outcome)]; }
  int64_t planned() const;  // the sum of all outcomes
  int64_t answered() const { return of(Outcome::kAnswered); }
  int64_t failed() const { return planned() - answered() - of(Outcome::kUnsent); }
};

}  // namespace weir::load
