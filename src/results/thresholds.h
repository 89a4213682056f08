// The limits behind verdicts, each once, with its reason. docs/reference/verdicts.md lists them for users.
// A share is from 0 to 1.
#pragma once

#include <cstdint>

namespace weir::results::threshold {

// The load generator.
// Requests that left more than 1 ms after their plan. More of them than 1 % decide p99.
inline constexpr double kLateShare = 0.01;
// p99 of the slip over the median response time: as large an error as kDrift allows.
inline constexpr double kSlipShare = 0.05;
// Time in which a closed loop's slots were empty: that share of the concurrency is missing.
inline constexpr double kEmptySuspect = 0.05, kEmptyInvalid = 0.2;
// Use of the generator's busiest thread, or of its measured ceiling. In an M/D/1 queue a request waits
// rho / (2 (1 - rho)) service times: half of one at 0.5, two at 0.8.
inline constexpr double kGeneratorBusySuspect = 0.5, kGeneratorBusyInvalid = 0.8;
// Use of the busiest thread from which on the ceiling is measured: half of kGeneratorBusySuspect.
inline constexpr double kWorthCalibrating = 0.25;
// Part of the requests due that were not answered in time. A rate is a claim, so this is stricter than
// kDrift.
inline constexpr double kRateMissed = 0.01;
// Change between the first and the last third of a run, and the p-value of a trend (Spearman).
inline constexpr double kDrift = 0.05, kDriftPValue = 0.01;
// Requests that were not answered. A thousandth of the requests moves p99 by a tenth of its tail at most.
inline constexpr double kErrors = 0.001;
// Samples of a response time, and batches of a rate: the usual least number for a mean's normal interval.
inline constexpr int64_t kFewestSamples = 30, kFewestBatches = 30;
// Requests of other clients that the server counted.
inline constexpr double kSharedSuspect = 0.01, kSharedInvalid = 0.1;

// The machine.
// CPU time that the hypervisor took, in percent.
inline constexpr double kStealPercent = 1;
// Cores that processes other than the client and the server used, of all cores: as large a share as kDrift
// allows.
inline constexpr double kForeignShare = 0.05;
// The same of a study's trial. The kernel's work for a shaped link belongs to no process and counts as
// theirs. It was seen to stay below this limit.
inline constexpr double kForeignShareOfTrial = 0.1;
// Time for which a control group's quota held the work back.
inline constexpr double kThrottledShare = 0.01;
// Shorter runs than this, in seconds, have too few samples to name other processes.
inline constexpr double kShortestForForeign = 0.3;

// Bottlenecks.
// Share of the time from which on a part in use holds the others back.
inline constexpr double kBusy = 0.8;
// The same of a link shared by several connections: TCP does not fill it.
inline constexpr double kLinkFull = 0.6;
// Use of all cores, or of the engine, from which on more work finds no free time.
inline constexpr double kTaken = 0.9;
// Share of the time in which full batches waited only because too many others were in flight.
inline constexpr double kHeldBack = 0.5;
// Share of the cores from which on a bottleneck's explanation names other processes.
inline constexpr double kForeignNamed = 0.25;
// Rates within this ratio count as equal.
inline constexpr double kSameRate = 1.02;
// Gains below this are not worth naming.
inline constexpr double kWorthGain = 1.05;

}  // namespace weir::results::threshold
