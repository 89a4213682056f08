#include "load/validate/validate_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "load/validate/read_result.h"
#include "results/verdict.h"
#include "stats/early_stopping.h"
#include "stats/quantile.h"
#include "stats/summary.h"

namespace weir::load {
namespace {

using results::LoadResult;
using results::Reason;
using results::Standing;
using stats::Answer;
using Interval = LoadResult::Interval;
using Run = LoadResult::Run;
using Times = LoadResult::Times;

constexpr double kBucket = 2e-3;          // relative, of a quantile and a bound: a Histogram's bucket each
constexpr double kSquares = 1e-6;         // relative, of what differences of squares say
constexpr double kConfidence = 0.95;      // of the intervals that are stored
constexpr int64_t kMost = 1'000'000'000;  // samples that the binomial distribution is asked about

std::string_view WordOf(Answer answer) {
  constexpr std::array<std::string_view, 3> kWords = {"yes", "no", "undecided"};
  return kWords.at(static_cast<size_t>(answer));
}

// How bad an answer is: yes, undecided, no.
int RankOf(Answer answer) { return answer == Answer::kYes ? 0 : answer == Answer::kUndecided ? 1 : 2; }

// Reasons that make a claim INVALID wherever they are given, and those that never do.
bool IsAlwaysInvalid(std::string_view reason, std::string_view claim) {
  return reason == ToString(Reason::kErrors) || reason == ToString(Reason::kThrottling) ||
         (reason == ToString(Reason::kRateMissed) && claim == "latency");
}
bool IsNeverInvalid(std::string_view reason, std::string_view claim) {
  return reason == ToString(Reason::kSteal) || reason == ToString(Reason::kForeignCpu) ||
         (reason == ToString(Reason::kRateMissed) && claim == "throughput");
}

class StatisticsCheck {
 public:
  StatisticsCheck(const LoadResult::Level& level, const std::optional<LoadResult::Claim>& claim,
                  std::string where, std::vector<Finding>& findings)
      : level_(level), claim_(claim), where_(std::move(where)), findings_(findings) {}

  void Check() {
    OneDistribution(level_.response, where_ + ".response_ms");
    OneDistribution(level_.service, where_ + ".service_ms");
    OneDistribution(level_.first_byte, where_ + ".first_byte_ms");
    OneDistribution(level_.slip, where_ + ".slip_ms");
    for (size_t i = 0; i < level_.runs.size(); ++i)
      OneDistribution(level_.runs[i].response, fmt::format("{}.runs[{}].response_ms", where_, i));
    if (!level_.runs.empty()) {
      SumOfRuns();
      if (level_.runs.size() == 1) OnlyRun(level_.runs.front().response);
      SpreadOfRuns();
    }
    OneVerdict("throughput", level_.verdict.throughput);
    OneVerdict("latency", level_.verdict.latency);
    NoAnswers();
    if (claim_) Claim(*claim_);
  }

 private:
  void Add(std::string_view rule, std::string where, std::string what) {
    findings_.push_back({rule, std::move(where), std::move(what), true});
  }
  // `slack`: of the figures that both were calculated from.
  static bool IsNear(double a, double b, double share, double slack) {
    return std::abs(a - b) <= share * std::max(std::abs(a), std::abs(b)) + kRounding * std::abs(slack);
  }
  void MustBe(std::string_view rule, const char* part, const std::optional<double>& value,
              const std::optional<double>& wanted, double share, double slack) {
    if (!value || !wanted || IsNear(*value, *wanted, share, slack)) return;
    Add(rule, where_ + ".response_ms", fmt::format("{} is {} ms, by its runs {} ms", part, *value, *wanted));
  }

  void OneDistribution(const Times& times, const std::string& where);
  void Deviation(const Times& times, double deviation, const std::string& where);
  void QuantileInterval(const Times& times, size_t which, const Interval& interval, const std::string& where);
  void SumOfRuns();
  void OnlyRun(const Times& run);
  void SpreadOfRuns();
  void OneVerdict(std::string_view claim, const std::string& verdict);
  void NoAnswers();
  void Claim(const LoadResult::Claim& claim);
  void Threshold(double percentile, double threshold_ms);

  const LoadResult::Level& level_;
  const std::optional<LoadResult::Claim>& claim_;
  const std::string where_;
  std::vector<Finding>& findings_;
};

void StatisticsCheck::OneDistribution(const Times& times, const std::string& where) {
  if (times.standard_deviation) Deviation(times, *times.standard_deviation, where);
  for (size_t i = 0; i < LoadResult::kPercentileCount; ++i) {
    if (const auto interval = times.IntervalOf(LoadResult::kPercentiles[i].first))
      QuantileInterval(times, i, *interval, where);
  }
  if (const auto interval = times.IntervalOf(LoadResult::kMean)) {
    const double centre = (interval->low + interval->high) / 2, width = interval->high - interval->low;
    if (width < 0 || !times.mean || !IsNear(centre, *times.mean, kRounding, width)) {
      Add(rule::kIntervals, where,
          fmt::format("the mean's interval, {} to {} ms, does not lie about the mean", interval->low,
                      interval->high));
    }
  }
}

// Bhatia and Davis' bound above (A better bound on the variance, 2000), and below what the least and the
// greatest alone make of it.
void StatisticsCheck::Deviation(const Times& times, double deviation, const std::string& where) {
  if (times.n < 2 || !times.mean || !times.min || !times.max) {
    Add(rule::kDeviation, where, fmt::format("{} samples have no standard deviation", times.n));
    return;
  }
  const double n = static_cast<double>(times.n);
  const double above = std::max(0.0, *times.max - *times.mean),
               below = std::max(0.0, *times.mean - *times.min);
  const double most = std::sqrt(above * below * n / (n - 1)),
               least = std::hypot(above, below) / std::sqrt(n - 1);
  const double slack = kRounding * *times.max;
  if (deviation <= most * (1 + kSquares) + slack && deviation >= least * (1 - kSquares) - slack) return;
  Add(rule::kDeviation, where,
      fmt::format("the standard deviation is {} ms, and with these mean, min and max it is from {} to {} ms",
                  deviation, least, most));
}

// An end of the interval is the value at a rank, as every percentile is: in their order.
void StatisticsCheck::QuantileInterval(const Times& times, size_t which, const Interval& interval,
                                       const std::string& where) {
  const char* const name = LoadResult::kPercentiles[which].first;
  const auto add = [&](std::string what) {
    Add(rule::kIntervals, where,
        fmt::format("the interval of {}, {} to {} ms, {}", name, interval.low, interval.high, what));
  };
  if (times.n > kMost || !times.min || !times.max) return;
  const auto ranks = stats::QuantileRanks(LoadResult::kPercentiles[which].second, times.n, kConfidence);
  if (!ranks) return add(fmt::format("is more than {} samples tell", times.n));
  if (interval.low > interval.high) return add("ends before it begins");
  const auto fits = [&](double end, int64_t rank, double value, int64_t value_rank) {
    const bool in_order = (rank > value_rank || end <= value * (1 + kRounding)) &&
                          (rank < value_rank || end >= value * (1 - kRounding));
    if (!in_order) add(fmt::format("and the value of {} ms at rank {} are out of order", value, value_rank));
    return in_order;
  };
  for (const auto& [end, rank] : {std::pair(interval.low, ranks->low), {interval.high, ranks->high}}) {
    if (!fits(end, rank, *times.min, 1) || !fits(end, rank, *times.max, times.n)) return;
    for (size_t i = 0; i < LoadResult::kPercentileCount; ++i) {
      const auto& value = times.percentiles[i];
      if (i == which || !value) continue;  // its own is looked at as all are
      if (!fits(end, rank, *value, stats::NearestRank(LoadResult::kPercentiles[i].second, times.n))) return;
    }
  }
}

// Checks the figures of all runs together against those of each run.
void StatisticsCheck::SumOfRuns() {
  double n = 0, sum = 0, max = 0;
  std::optional<double> least, most;
  for (const Run& run : level_.runs) {
    const Times& times = run.response;
    if (times.n == 0 || !times.mean || !times.min || !times.max) continue;
    n += static_cast<double>(times.n);
    sum += static_cast<double>(times.n) * *times.mean;
    max = std::max(max, *times.max);
    least = std::min(least.value_or(*times.min), *times.min);
    most = std::max(most.value_or(*times.max), *times.max);
  }
  if (n == 0) return;
  const double mean = sum / n;
  MustBe(rule::kRuns, "the mean", level_.response.mean, mean, kRounding, 0);
  MustBe(rule::kRuns, "min", level_.response.min, least, kRounding, 0);
  MustBe(rule::kRuns, "max", level_.response.max, most, kRounding, 0);
  double squares = 0;
  bool is_known = n > 1;
  for (const Run& run : level_.runs) {
    const Times& times = run.response;
    if (times.n == 0 || !times.mean) continue;
    is_known &= times.n == 1 || times.standard_deviation.has_value();
    const double deviation = times.standard_deviation.value_or(0), apart = *times.mean - mean;
    const double count = static_cast<double>(times.n);
    squares += (count - 1) * deviation * deviation + count * apart * apart;
  }
  if (is_known)
    MustBe(rule::kDeviation, "the standard deviation", level_.response.standard_deviation,
           std::sqrt(squares / (n - 1)), kSquares, max);
  for (size_t i = 0; i < LoadResult::kPercentileCount && level_.runs.size() > 1; ++i) {
    const auto& value = level_.response.percentiles[i];
    std::vector<double> values;
    for (const Run& run : level_.runs) {
      if (run.response.percentiles[i]) values.push_back(*run.response.percentiles[i]);
    }
    if (!value || values.size() < level_.runs.size()) continue;
    const auto [low, high] = std::ranges::minmax_element(values);
    if (*value >= *low * (1 - kBucket) && *value <= *high * (1 + kBucket)) continue;
    Add(rule::kRuns, where_ + ".response_ms",
        fmt::format("{} is {} ms, in its runs {} to {} ms", LoadResult::kPercentiles[i].first, *value, *low,
                    *high));
  }
}

// A level of one run is that run.
void StatisticsCheck::OnlyRun(const Times& run) {
  for (size_t i = 0; i < LoadResult::kPercentileCount; ++i) {
    const char* const name = LoadResult::kPercentiles[i].first;
    MustBe(rule::kRuns, name, level_.response.percentiles[i], run.percentiles[i], kRounding, 0);
    const auto mine = level_.response.IntervalOf(name), its = run.IntervalOf(name);
    if (!mine || !its) continue;
    if (IsNear(mine->low, its->low, kRounding, 0) && IsNear(mine->high, its->high, kRounding, 0)) continue;
    Add(rule::kIntervals, where_ + ".response_ms",
        fmt::format("the interval of {} is {} to {} ms, in its only run {} to {} ms", name, mine->low,
                    mine->high, its->low, its->high));
  }
}

// Standard error and interval, by the differences between the runs.
void StatisticsCheck::SpreadOfRuns() {
  std::vector<double> rates, means;
  for (const Run& run : level_.runs) {
    rates.push_back(run.throughput_per_s);
    if (run.response.mean) means.push_back(*run.response.mean);
  }
  if (level_.repeats && *level_.repeats != std::ssize(level_.runs))
    Add(rule::kRuns, where_, fmt::format("{} repeats, and {} runs", *level_.repeats, level_.runs.size()));
  const auto rate = stats::Summarise(rates), mean = stats::Summarise(means);
  if (const auto& error = level_.throughput_standard_error; error && rate) {
    if (!rate->standard_error) {
      Add(rule::kDeviation, where_, "the throughput has a standard error, and there is one run");
    } else if (!IsNear(*error, *rate->standard_error, kSquares, rate->max)) {
      Add(rule::kDeviation, where_,
          fmt::format("the throughput's standard error is {}, that of its runs {}", *error,
                      *rate->standard_error));
    }
  }
  const auto interval = level_.response.IntervalOf(LoadResult::kMean);
  if (level_.runs.size() < 2 || !interval || !mean || !mean->low) return;
  const double half = (interval->high - interval->low) / 2, wanted = (*mean->high - *mean->low) / 2;
  if (!IsNear(half, wanted, kSquares, mean->max)) {
    Add(rule::kIntervals, where_ + ".response_ms",
        fmt::format("the mean is told to within {} ms, and by the means of its {} runs it is {} ms", half,
                    mean->n, wanted));
  }
}

void StatisticsCheck::OneVerdict(std::string_view claim, const std::string& verdict) {
  const bool is_invalid = verdict == ToString(Standing::kInvalid);
  if (!is_invalid && verdict != ToString(Standing::kSuspect)) return;
  bool has_any = false, may_be_invalid = false;
  for (const LoadResult::Reason& reason : level_.reasons) {
    if (std::ranges::find(reason.about, claim) == reason.about.end()) continue;
    has_any = true;
    may_be_invalid |= !IsNeverInvalid(reason.reason, claim);
    if (!is_invalid && IsAlwaysInvalid(reason.reason, claim)) {
      Add(rule::kVerdict, where_,
          fmt::format("{} is {}, and \"{}\" makes it INVALID", claim, verdict, reason.reason));
    }
  }
  if (is_invalid && has_any && !may_be_invalid)
    Add(rule::kVerdict, where_, fmt::format("{} is INVALID, and its reasons make it SUSPECT at most", claim));
}

void StatisticsCheck::NoAnswers() {
  const auto has_none = [](const Run& run) { return run.answered == 0; };
  if (std::ranges::none_of(level_.runs, has_none) || IsInvalidFor(level_, Reason::kTooFewSamples)) return;
  Add(rule::kTooFew, where_, "a run without an answer; both claims should be INVALID for it");
}

void StatisticsCheck::Claim(const LoadResult::Claim& claim) {
  constexpr double kUsual = 50, kUsualSlow = 99;  // where none is asked for
  const double p = claim.percentile / 100;
  if (!(p > 0 && p < 1)) return Add(rule::kClaim, "claim", fmt::format("p{:g} is none", claim.percentile));
  const bool is_told =
      level_.verdict.latency == ToString(Standing::kInvalid) && HasReason(level_, Reason::kTooFewSamples);
  if (claim.percentile != kUsual && !stats::Supports(p, level_.response.n) && !is_told) {
    Add(rule::kClaim, where_,
        fmt::format("{} answers do not support the p{:g} of the claim; the latency should be INVALID for it",
                    level_.response.n, claim.percentile));
  }
  const bool is_slow = !level_.slowest || level_.slowest->above_percentile == claim.percentile ||
                       (claim.percentile == kUsual && level_.slowest->above_percentile == kUsualSlow);
  if (!is_slow) {
    Add(rule::kClaim, where_ + ".slowest",
        fmt::format("they are above p{:g}, and p{:g} is claimed", level_.slowest->above_percentile,
                    claim.percentile));
  }
  if (level_.below_threshold.has_value() != claim.latency_threshold_ms.has_value()) {
    Add(rule::kClaim, where_,
        claim.latency_threshold_ms ? "it does not say whether it is below the threshold of the claim"
                                   : "it answers for a threshold, and the claim has none");
  } else if (claim.latency_threshold_ms) {
    Threshold(p, *claim.latency_threshold_ms);
  }
}

// Checks the answer on the threshold: the percentiles bound how many requests were over it.
void StatisticsCheck::Threshold(double p, double threshold_ms) {
  constexpr std::array kAnswers = {Answer::kYes, Answer::kUndecided, Answer::kNo};
  const auto told = std::ranges::find(kAnswers, std::string_view(*level_.below_threshold), WordOf);
  if (told == kAnswers.end()) return Add(rule::kClaim, where_, "below_threshold is no answer");
  const Times& times = level_.response;
  if (level_.planned > kMost || times.n != level_.answered || level_.planned < level_.answered) return;
  int64_t least = 0, most = times.n;
  const auto look = [&](const std::optional<double>& value, int64_t rank) {
    if (!value) return;
    if (*value > threshold_ms * (1 + kBucket)) least = std::max(least, times.n - rank + 1);
    if (*value < threshold_ms * (1 - kBucket)) most = std::min(most, times.n - rank);
  };
  look(times.min, 1);
  for (size_t i = 0; i < LoadResult::kPercentileCount; ++i)
    look(times.percentiles[i], stats::NearestRank(LoadResult::kPercentiles[i].second, times.n));
  look(times.max, times.n);
  const int64_t lost = level_.planned - level_.answered;
  const Answer best = stats::QuantileIsBelow(p, level_.planned, lost + least),
               worst = stats::QuantileIsBelow(p, level_.planned, lost + std::max(least, most));
  if (RankOf(best) <= RankOf(*told) && RankOf(*told) <= RankOf(worst)) return;
  Add(rule::kClaim, where_,
      fmt::format("p{:g} below {} ms? \"{}\", and with {} to {} of {} requests over it or not answered it "
                  "is \"{}\"",
                  100 * p, threshold_ms, WordOf(*told), lost + least, lost + most, level_.planned,
                  WordOf(RankOf(*told) < RankOf(best) ? best : worst)));
}

}  // namespace

void CheckStatistics(const LoadResult::Level& level, const std::optional<LoadResult::Claim>& claim,
                     const std::string& where, std::vector<Finding>& findings) {
  StatisticsCheck(level, claim, where, findings).Check();
}

}  // namespace weir::load
