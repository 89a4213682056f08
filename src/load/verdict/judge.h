// Whether what a run says may be believed. Pure: figures in, verdicts out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/generator/generator.h"
#include "load/verdict/server_share.h"
#include "record/verdict.h"
#include "stats/batch_means.h"

namespace weir::load {

// What is known of a run beside what it played. Absent: not known, and not judged.
struct Environment {
  std::optional<double> rate;           // asked for, an open loop's
  std::optional<double> ceiling_per_s;  // requests that the generator can send to a server that does nothing
  int cpus = 1;                         // of the machine
  std::optional<double> steal_percent;  // of its CPU time, taken by the hypervisor
  std::optional<double> foreign_cpu;    // cores used by others than the generator and the server watched
  std::optional<double> throttled_s;    // held back by a control group's quota
};

// Where the lines are drawn; docs/measurement.md says why.
struct Limits {
  double late_share = 0.01;  // of requests, more than 1 ms late
  double slip_share = 0.05;  // slip's p99 of the median response time: above it the latency is suspect
  double empty_suspect = 0.05, empty_invalid = 0.2;  // of a closed loop's places
  double busy_suspect = 0.5, busy_invalid = 0.8;
  double worth_calibrating = 0.25;  // of the busiest thread's time: above it the ceiling is asked for
  double rate_share = 0.01;         // of the rate asked for, missed
  double littles_law = 0.02;
  double drift = 0.05;  // of the mean, between the first and the last third
  double drift_p_value = 0.01;
  double errors = 0.001;  // of the requests planned
  double steal_percent = 1;
  double foreign_share = 0.05;    // of the machine's CPUs
  double throttled_share = 0.01;  // of the time
  int64_t fewest = 30;            // samples
  // Of the requests that the server counted, those of other clients; fewer than two are never held against
  // it.
  double shared_suspect = 0.01, shared_invalid = 0.1;
};

struct Claims {
  record::Verdict throughput, latency;
};
// The latency is INVALID for what lies with the generator or the machine alone: the run says nothing of the
// system under load, whatever it measured.
bool IsSpoiled(const record::Verdict& latency, const Tally& tally);

Claims Judge(const RunOutcome& played, const Environment& around, const Limits& limits = {});
// Whether there are answers enough, those of all repeats together, for a claim of this percentile, 0 to 1.
void JudgePercentile(const stats::Histogram& response, double percentile, record::Verdict& latency);

// Whether the server worked for other clients while it was measured.
bool IsShared(const ServerShare& share, const Limits& limits = {});
// What that makes of the claims: response times and throughput are those of a server that others used.
void JudgeServerShare(const ServerShare& share, Claims& claims, const Limits& limits = {});

// Requests in flight and requests a second times their time in flight, and how far they are apart.
struct LittlesLaw {
  double in_flight = 0;   // mean, counted
  double expected = 0;    // throughput x mean time in flight
  double difference = 0;  // of the larger
  double straddling =
      0;  // the mean time in flight over the run's: what requests across its ends may make of it
};
std::optional<LittlesLaw> CheckLittlesLaw(const RunOutcome& played);

// How a figure went over the run: absent where there are too few slices to tell.
struct Drift {
  double change = 0;   // the last third's mean over the first third's, less 1
  double p_value = 1;  // of a trend (Spearman)
  // MSER-5 finds the start of the steady part in the first half, or the first and the last third differ by no
  // more than chance allows.
  bool settled = true;
};
// Of the mean of each slice, or of its count.
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
