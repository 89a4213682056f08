#include "load/verdict/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stats/quantile.h"
#include "stats/steady_state.h"
#include "stats/summary.h"

namespace weir::load {
namespace {

using results::Reason;
using results::Standing;

// Batches of a run: few enough to be long, and so to depend little on one another.
constexpr size_t kFewestBatches = 20, kMostBatches = 47;
constexpr double kConfidence = 0.99;  // of a difference between the thirds of a run

std::string Percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

class Judgement {
 public:
  Judgement(const RunOutcome& played, const Environment& around, const Limits& limits)
      : played_(played), tally_(played.tally), around_(around), limits_(limits) {}

  Claims Judge() {
    Counts();
    Generator();
    Steadiness();
    Machine();
    return std::move(claims_);
  }

 private:
  void Both(Standing standing, Reason reason, const std::string& evidence) {
    claims_.throughput.Add(standing, {reason, evidence});
    claims_.latency.Add(standing, {reason, evidence});
  }
  void Latency(Standing standing, Reason reason, std::string evidence) {
    claims_.latency.Add(standing, {reason, std::move(evidence)});
  }
  void Throughput(Standing standing, Reason reason, std::string evidence) {
    claims_.throughput.Add(standing, {reason, std::move(evidence)});
  }

  void Counts();
  std::string TooFew() const;
  void Generator();
  void Busy(double share, const std::string& what);
  void Steadiness();
  void OneDrift(const std::optional<Drift>& drift, const char* what, results::Verdict& verdict) const;
  void Machine();

  const RunOutcome& played_;
  const Tally& tally_;
  const Environment& around_;
  const Limits& limits_;
  Claims claims_;
};

void Judgement::Counts() {
  const int64_t answered = tally_.answered(), planned = tally_.planned();
  if (planned > 0) {
    const double bad = static_cast<double>(planned - answered) / static_cast<double>(planned);
    if (bad > limits_.errors) {
      Both(Standing::kInvalid, Reason::kErrors,
           fmt::format("{} of {} requests were not answered ({}), limit {}", planned - answered, planned,
                       Percent(bad), Percent(limits_.errors)));
    }
  }
  if (answered < limits_.fewest) {
    Both(answered == 0 ? Standing::kInvalid : Standing::kSuspect, Reason::kTooFewSamples, TooFew());
  }
  if (played_.interrupted)
    Both(Standing::kSuspect, Reason::kTooFewSamples,
         fmt::format("the run was stopped after {:.3g} s", played_.measured_s));
  if (around_.rate && planned > 0 && !played_.by_count) {
    // Throughput is compared with the requests that the schedule planned; chance makes them more or
    // fewer than the rate says. A short run ends between two requests.
    const auto wanted = static_cast<double>(planned), got = static_cast<double>(tally_.answered_within);
    if (got < (1 - limits_.rate_share) * wanted - 1) {
      const std::string evidence =
          fmt::format("{:.4g} of {:.4g} requests a second were answered in time, limit {}",
                      got / played_.measured_s, wanted / played_.measured_s, Percent(1 - limits_.rate_share));
      Throughput(Standing::kSuspect, Reason::kRateMissed, evidence);
      Latency(Standing::kInvalid, Reason::kRateMissed, evidence);
    }
  }
}

std::string Judgement::TooFew() const {
  const std::string few =
      fmt::format("{} answers, at least {} are needed", tally_.answered(), limits_.fewest);
  if (played_.measured_s > 0 || played_.interrupted) return few;
  const std::string why =
      around_.rate ? "no request was due after the warm-up"
                   : "the requests of the warm-up were still out, and the next wait for their answers";
  // By count a run has waited for so long as it waits for any answer.
  return fmt::format("{}: the run ended after {:.3g} s, when {}{}", few, played_.warm_up_s, why,
                     played_.by_count ? "" : "; a longer --duration leaves time for them");
}

void Judgement::Generator() {
  const int64_t sent = tally_.slip.count();
  if (sent > 0 && around_.rate) {
    const double late = static_cast<double>(tally_.late) / static_cast<double>(sent);
    const double slip = 1e-6 * static_cast<double>(tally_.slip.Quantile(0.99).value_or(0));
    const double median = 1e-6 * static_cast<double>(tally_.response.Quantile(0.5).value_or(0));
    if (late > limits_.late_share) {
      const std::string evidence = fmt::format("{} of the requests left more than 1 ms late, limit {}",
                                               Percent(late), Percent(limits_.late_share));
      Latency(Standing::kInvalid, Reason::kGeneratorLate, evidence);
      Throughput(Standing::kSuspect, Reason::kGeneratorLate, evidence);
    } else if (median > 0 && slip > limits_.slip_share * median) {
      Latency(Standing::kSuspect, Reason::kGeneratorLate,
              fmt::format("p99 of the slip is {:.3g} ms, above {} of the median response time of {:.3g} ms",
                          slip, Percent(limits_.slip_share), median));
    }
  }
  if (played_.empty_share > limits_.empty_suspect) {
    const bool invalid = played_.empty_share > limits_.empty_invalid;
    Both(invalid ? Standing::kInvalid : Standing::kSuspect, Reason::kGeneratorLate,
         fmt::format("the places stood empty for {} of the time though their answers were there, limit {}",
                     Percent(played_.empty_share),
                     Percent(invalid ? limits_.empty_invalid : limits_.empty_suspect)));
  }
  Busy(played_.busiest_thread,
       fmt::format("thread {} of the generator was busy", played_.busiest_thread_name));
  if (around_.ceiling_per_s && *around_.ceiling_per_s > 0 && played_.measured_s > 0) {
    Busy(played_.sent_per_s() / *around_.ceiling_per_s,
         fmt::format("{:.4g} requests/s went out, and {:.4g} are all that the generator can send to a server "
                     "that does nothing:",
                     played_.sent_per_s(), *around_.ceiling_per_s));
  }
}

void Judgement::Busy(double share, const std::string& what) {
  if (share <= limits_.busy_suspect) return;
  const bool invalid = share > limits_.busy_invalid;
  Both(invalid ? Standing::kInvalid : Standing::kSuspect, Reason::kGeneratorBusy,
       fmt::format("{} {}, limit {}", what, Percent(share),
                   Percent(invalid ? limits_.busy_invalid : limits_.busy_suspect)));
}

void Judgement::OneDrift(const std::optional<Drift>& drift, const char* what,
                         results::Verdict& verdict) const {
  if (!drift || std::abs(drift->change) <= limits_.drift) return;
  const bool trend = drift->p_value < limits_.drift_p_value;
  if (!trend && drift->settled) return;
  verdict.Add(trend ? Standing::kInvalid : Standing::kSuspect,
              {Reason::kNoSteadyState,
               fmt::format("{} of the last third of the run is {:+.3g} % of the first third's ({})", what,
                           100 * drift->change, trend ? "a trend" : "it had not settled by the middle")});
}

void Judgement::Steadiness() {
  if (around_.rate_changes) return;
  OneDrift(FindDrift(tally_.response_series, Of::kMean, played_.measured_s), "the response time",
           claims_.latency);
  OneDrift(FindDrift(tally_.done_series, Of::kCount, played_.measured_s), "the throughput",
           claims_.throughput);
}

void Judgement::Machine() {
  if (around_.steal_percent && *around_.steal_percent > limits_.steal_percent) {
    Both(Standing::kSuspect, Reason::kSteal,
         fmt::format("the hypervisor took {:.2g} % of the CPU time, limit {:.2g} %", *around_.steal_percent,
                     limits_.steal_percent));
  }
  if (around_.foreign_cpu && *around_.foreign_cpu > limits_.foreign_share * around_.cpus) {
    Both(Standing::kSuspect, Reason::kForeignCpu,
         fmt::format("others used {:.2g} of {} CPUs, limit {}", *around_.foreign_cpu, around_.cpus,
                     Percent(limits_.foreign_share)));
  }
  if (around_.throttled_s && played_.measured_s > 0) {
    const double share = *around_.throttled_s / played_.measured_s;
    if (share > limits_.throttled_share) {
      Both(Standing::kInvalid, Reason::kThrottling,
           fmt::format("the control group's quota held the generator back for {} of the time, limit {}",
                       Percent(share), Percent(limits_.throttled_share)));
    }
  }
}

// Returns the slices that the run filled (its end may cut off the last), neighbours joined until there are
// no more than `most`: sums, not means, so that slices with many answers count for more.
std::vector<double> Batches(const Series& series, Of of, double seconds, size_t most) {
  Series covered = series;
  // Slices at the end in which nothing happened were never begun; they are part of a count.
  if (of == Of::kCount) covered.Cover(FromSeconds(seconds));
  std::vector<Series::Slice> slices = covered.slices();
  slices.resize(std::min(slices.size(), static_cast<size_t>(seconds / Seconds(covered.width()))));
  while (slices.size() > most) {
    for (size_t i = 0; i + 1 < slices.size(); i += 2) {
      slices[i / 2] = {.count = slices[i].count + slices[i + 1].count,
                       .sum = slices[i].sum + slices[i + 1].sum};
    }
    slices.resize(slices.size() / 2);
  }
  std::vector<double> values;
  for (const Series::Slice& slice : slices) {
    if (of == Of::kCount) {
      values.push_back(static_cast<double>(slice.count));
    } else if (slice.count > 0) {
      values.push_back(slice.sum / static_cast<double>(slice.count));
    }
  }
  return values;
}

}  // namespace

void JudgePercentile(const stats::Histogram& response, double percentile, results::Verdict& latency) {
  if (stats::Supports(percentile, response.count())) return;
  const double needed = 10 / std::min(percentile, 1 - percentile);
  latency.Add(Standing::kInvalid,
              {Reason::kTooFewSamples, fmt::format("{} answers do not support p{:g}: it takes {:.0f}",
                                                   response.count(), 100 * percentile, std::ceil(needed))});
}

bool IsShared(const ServerShare& share, const Limits& limits) {
  return share.others_at_least() >= 2 && share.others_share() > limits.shared_suspect;
}

void JudgeServerShare(const ServerShare& share, Claims& claims, const Limits& limits) {
  if (!IsShared(share, limits)) return;
  const bool invalid = share.others_share() > limits.shared_invalid;
  const std::string evidence = fmt::format(
      "{} or more of the {} requests that the server counted came from other clients ({}), limit {}",
      share.others_at_least(), share.counted, Percent(share.others_share()),
      Percent(invalid ? limits.shared_invalid : limits.shared_suspect));
  const Standing standing = invalid ? Standing::kInvalid : Standing::kSuspect;
  claims.throughput.Add(standing, {Reason::kServerShared, evidence});
  claims.latency.Add(standing, {Reason::kServerShared, evidence});
}

bool IsSpoiled(const results::Verdict& latency, const Tally& tally) {
  if (latency.standing < Standing::kInvalid) return false;
  return std::ranges::none_of(latency.causes, [&](const results::Cause& cause) {
    // The generator is the cause of requests that were not sent.
    if (cause.reason == Reason::kErrors) return tally.failed() > 0;
    return cause.reason == Reason::kRateMissed || cause.reason == Reason::kNoSteadyState;
  });
}

Claims Judge(const RunOutcome& played, const Environment& around, const Limits& limits) {
  return Judgement(played, around, limits).Judge();
}

double OutsideOfServer(std::optional<double> send, std::optional<double> fastest) {
  constexpr double kCalls = 3;
  return std::min(kCalls * send.value_or(0), fastest.value_or(0));
}

std::optional<Drift> FindDrift(const Series& series, Of of, double seconds) {
  const std::vector<double> values = Batches(series, of, seconds, kMostBatches);
  const auto trend = stats::SpearmanTrend(values);
  if (values.size() < kFewestBatches || !trend) return std::nullopt;
  const auto third = static_cast<std::ptrdiff_t>(values.size() / 3);
  const auto first = stats::Summarise(std::span(values).first(third)),
             last = stats::Summarise(std::span(values).last(third));
  if (!first || !last || first->mean <= 0) return std::nullopt;
  const double error = std::hypot(first->standard_error.value_or(0), last->standard_error.value_or(0));
  const bool apart = std::abs(last->mean - first->mean) > stats::StudentT(kConfidence, 2 * third - 2) * error;
  const auto mser = stats::Mser5(Batches(series, of, seconds, Series::kMost));
  return Drift{.change = last->mean / first->mean - 1,
               .p_value = trend->p_value,
               .settled = !apart || !mser || mser->settled};
}

std::optional<stats::MeanInterval> MeanResponse(const RunOutcome& played) {
  return stats::BatchMeans(Batches(played.tally.response_series, Of::kMean, played.measured_s, kMostBatches));
}

}  // namespace weir::load
