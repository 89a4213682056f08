// Whether what a run says may be believed. Pure: figures in, verdicts out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/generator/generator.h"
#include "load/verdict/server_share.h"
#include "results/thresholds.h"
#include "results/verdict.h"
#include "stats/batch_means.h"

namespace weir::load {

// Facts about a run beside its scenario. Absent: not known, and not judged.
struct Environment {
  std::optional<double> rate;           // asked for, an open loop's
  std::optional<double> ceiling_per_s;  // requests that the generator can send to a server that does nothing
  bool rate_changes = false;            // by a trace: response times and throughput may change with it
  int cpus = 1;                         // of the machine
  std::optional<double> steal_percent;  // of its CPU time, taken by the hypervisor
  std::optional<double> foreign_cpu;    // cores used by others than the generator and the server watched
  std::optional<double> throttled_s;    // held back by a control group's quota
};

// The limits behind the verdicts, with their reasons in results/thresholds.h. A test may set others.
struct Limits {
  double late_share = results::threshold::kLateShare;
  double slip_share = results::threshold::kSlipShare;
  double empty_suspect = results::threshold::kEmptySuspect, empty_invalid = results::threshold::kEmptyInvalid;
  double busy_suspect = results::threshold::kGeneratorBusySuspect,
         busy_invalid = results::threshold::kGeneratorBusyInvalid;
  double worth_calibrating = results::threshold::kWorthCalibrating;
  double rate_share = results::threshold::kRateMissed;
  double drift = results::threshold::kDrift;
  double drift_p_value = results::threshold::kDriftPValue;
  double errors = results::threshold::kErrors;
  double steal_percent = results::threshold::kStealPercent;
  double foreign_share = results::threshold::kForeignShare;
  double throttled_share = results::threshold::kThrottledShare;
  int64_t fewest = results::threshold::kFewestSamples;
  // Fewer than two requests of others are never held against the server.
  double shared_suspect = results::threshold::kSharedSuspect,
         shared_invalid = results::threshold::kSharedInvalid;
};

struct Claims {
  results::Verdict throughput, latency;
};
// The latency is INVALID for what lies with the generator or the machine alone: the run says nothing of the
// system under load, whatever it measured.
bool IsSpoiled(const results::Verdict& latency, const Tally& tally);

Claims Judge(const RunOutcome& played, const Environment& around, const Limits& limits = {});
// Whether there are answers enough, those of all repeats together, for a claim of this percentile, 0 to 1.
void JudgePercentile(const stats::Histogram& response, double percentile, results::Verdict& latency);

// Whether the server worked for other clients while it was measured.
bool IsShared(const ServerShare& share, const Limits& limits = {});
// Judges the claims by it: response times and throughput are those of a server that others used.
void JudgeServerShare(const ServerShare& share, Claims& claims, const Limits& limits = {});

// How a figure went over the run: absent where there are too few slices to tell.
struct Drift {
  double change = 0;   // the last third's mean over the first third's, less 1
  double p_value = 1;  // of a trend (Spearman)
  // MSER-5 finds the start of the steady part in the first half, or the first and the last third differ by no
  // more than chance allows.
  bool settled = true;
};
// Selects the mean of each slice, or its count.
enum class Of { kMean, kCount };
std::optional<Drift> FindDrift(const Series& series, Of of, double seconds);

// How much of a request's time may lie outside of the server: the client's send, and the server's receive and
// send, which its own clock does not see. None of the three is taken to last longer than the client's, and
// all of them no longer than the fastest request. Chance does not tell of it, so intervals reach that much
// lower: of a mean by the mean of `send`, of a percentile by the same one. Of any unit; 0 where `send` is not
// known.
double OutsideOfServer(std::optional<double> send, std::optional<double> fastest);

// The mean response time with its interval by batch means, in seconds.
std::optional<stats::MeanInterval> MeanResponse(const RunOutcome& played);

}  // namespace weir::load
