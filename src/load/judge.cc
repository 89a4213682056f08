#include "load/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stats/quantile.h"
#include "stats/steady_state.h"

namespace weir::load {
namespace {

using record::Reason;
using record::Standing;

constexpr size_t kFewestSlices = 20;
constexpr int64_t kFewestInSlice = 5;  // answers on average: thinner slices say more of chance than of drift

std::string Percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

class Judgement {
 public:
  Judgement(const Played& played, const Surroundings& around, const Limits& limits)
      : played_(played), tally_(played.tally), around_(around), limits_(limits) {}

  Claims Judge() {
    Counts();
    Generator();
    Law();
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
  void Generator();
  void Law();
  void Steadiness();
  void OneDrift(const std::optional<Drift>& drift, const char* what, record::Verdict& verdict) const;
  void Machine();

  const Played& played_;
  const Tally& tally_;
  const Surroundings& around_;
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
    Both(answered == 0 ? Standing::kInvalid : Standing::kSuspect, Reason::kTooFewSamples,
         fmt::format("{} answers, at least {} are needed", answered, limits_.fewest));
  } else if (around_.percentile && !stats::Supports(*around_.percentile, answered)) {
    const double needed = 10 / std::min(*around_.percentile, 1 - *around_.percentile);
    Latency(Standing::kInvalid, Reason::kTooFewSamples,
            fmt::format("{} answers do not support p{:g}: it takes {:.0f}", answered,
                        100 * *around_.percentile, std::ceil(needed)));
  }
  if (around_.rate && played_.measured_s > 0) {
    const double got = played_.throughput(), share = 1 - got / *around_.rate;
    // A short run ends between two requests.
    const double least = (1 - limits_.rate_share) * *around_.rate * played_.measured_s - 1;
    if (share > limits_.rate_share && got * played_.measured_s < least) {
      const std::string evidence =
          fmt::format("{:.4g} of {:.4g} requests a second were answered in time, limit {}", got,
                      *around_.rate, Percent(1 - limits_.rate_share));
      Throughput(Standing::kSuspect, Reason::kRateMissed, evidence);
      Latency(Standing::kInvalid, Reason::kRateMissed, evidence);
    }
  }
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
  const auto busy = [&](double share, const std::string& what) {
    if (share <= limits_.busy_suspect) return;
    const bool invalid = share > limits_.busy_invalid;
    Both(invalid ? Standing::kInvalid : Standing::kSuspect, Reason::kGeneratorBusy,
         fmt::format("{} {}, limit {}", what, Percent(share),
                     Percent(invalid ? limits_.busy_invalid : limits_.busy_suspect)));
  };
  busy(played_.busiest_thread,
       fmt::format("thread {} of the generator was busy", played_.busiest_thread_name));
  if (around_.ceiling_per_s && *around_.ceiling_per_s > 0) {
    busy(played_.throughput() / *around_.ceiling_per_s,
         fmt::format("of the {:.4g} requests a second that this generator reaches against a server that does "
                     "nothing, it made",
                     *around_.ceiling_per_s));
  }
}

void Judgement::Law() {
  const auto law = CheckLittlesLaw(played_);
  if (!law || law->difference <= limits_.littles_law + law->straddling) return;
  Both(
      Standing::kInvalid, Reason::kLittlesLaw,
      fmt::format("{:.4g} requests were in flight, throughput x time in flight is {:.4g}: {} apart, limit {}",
                  law->in_flight, law->expected, Percent(law->difference), Percent(limits_.littles_law)));
}

void Judgement::OneDrift(const std::optional<Drift>& drift, const char* what,
                         record::Verdict& verdict) const {
  if (!drift || std::abs(drift->change) <= limits_.drift) return;
  const bool trend = drift->p_value < limits_.drift_p_value;
  if (!trend && drift->settled) return;
  verdict.Add(trend ? Standing::kInvalid : Standing::kSuspect,
              {Reason::kNoSteadyState,
               fmt::format("{} of the last third of the run is {:+.3g} % of the first third's ({})", what,
                           100 * drift->change, trend ? "a trend" : "it had not settled by the middle")});
}

void Judgement::Steadiness() {
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

// Of the slices that the run filled: the last may be cut off by its end.
std::vector<double> ValuesOf(const Series& series, Of of, double seconds) {
  std::vector<double> values;
  const auto whole = static_cast<size_t>(seconds / Seconds(series.width()));
  for (size_t i = 0; i < std::min(whole, series.slices().size()); ++i) {
    const Series::Slice& slice = series.slices()[i];
    if (of == Of::kCount) {
      values.push_back(static_cast<double>(slice.count));
    } else if (slice.count > 0) {
      values.push_back(slice.sum / static_cast<double>(slice.count));
    }
  }
  return values;
}

// Neighbours together, until there are so many answers in each that their mean says something.
std::vector<double> Coarse(const Series& series, Of of, double seconds) {
  std::vector<double> values = ValuesOf(series, of, seconds);
  int64_t count = 0;
  for (const Series::Slice& slice : series.slices()) count += slice.count;
  while (values.size() >= 2 * kFewestSlices && count / std::ssize(values) < kFewestInSlice) {
    for (size_t i = 0; i + 1 < values.size(); i += 2) values[i / 2] = (values[i] + values[i + 1]) / 2;
    values.resize(values.size() / 2);
  }
  return values;
}

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

Claims Judge(const Played& played, const Surroundings& around, const Limits& limits) {
  return Judgement(played, around, limits).Judge();
}

std::optional<LittlesLaw> CheckLittlesLaw(const Played& played) {
  const Tally& tally = played.tally;
  if (played.measured_s <= 0 || tally.left == 0 || tally.in_flight_seconds <= 0) return std::nullopt;
  LittlesLaw law{.in_flight = tally.in_flight_seconds / played.measured_s,
                 .expected = tally.sojourn_seconds / played.measured_s};
  law.straddling = tally.straddling_seconds / tally.in_flight_seconds;
  law.difference = std::abs(law.in_flight - law.expected) / std::max(law.in_flight, law.expected);
  return law;
}

std::optional<Drift> FindDrift(const Series& series, Of of, double seconds) {
  const std::vector<double> values = Coarse(series, of, seconds);
  const auto trend = stats::SpearmanTrend(values);
  if (values.size() < kFewestSlices || !trend) return std::nullopt;
  const size_t third = values.size() / 3;
  const double first = Mean(std::span(values).first(third)), last = Mean(std::span(values).last(third));
  if (first <= 0) return std::nullopt;
  const auto mser = stats::Mser5(values);
  return Drift{.change = last / first - 1, .p_value = trend->p_value, .settled = !mser || mser->settled};
}

std::optional<stats::MeanInterval> MeanResponse(const Played& played) {
  std::vector<double> values = Coarse(played.tally.response_series, Of::kMean, played.measured_s);
  // Longer batches depend less on one another.
  while (values.size() >= 64) {
    for (size_t i = 0; i + 1 < values.size(); i += 2) values[i / 2] = (values[i] + values[i + 1]) / 2;
    values.resize(values.size() / 2);
  }
  return stats::BatchMeans(values);
}

}  // namespace weir::load
