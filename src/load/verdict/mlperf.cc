#include "load/verdict/mlperf.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "stats/early_stopping.h"

namespace weir::load {
namespace {

// MLPerf's for ResNet-50 (mlperf.conf).
constexpr double kServerBound = 0.015;
constexpr int64_t kOfflineSamples = 24'576;

std::string Percentile(double p) { return fmt::format("p{:g}", 100 * p); }

class Judgement {
 public:
  Judgement(const MlperfRules& rules, const RunOutcome& played, int rows_per_query)
      : rules_(rules), tally_(played.tally), played_(played), rows_(rows_per_query) {}

  MlperfResult Judge(std::optional<double> latency_bound) {
    result_.metric = fmt::format("{} ({})", rules_.metric, rules_.unit);
    result_.value = Value();
    Load();
    Length();
    Errors();
    if (latency_bound) Bound(*latency_bound);
    result_.valid = result_.value.has_value() && result_.shortfalls.empty();
    return std::move(result_);
  }

 private:
  void FallShort(std::string how) { result_.shortfalls.push_back(std::move(how)); }

  std::optional<double> Value() const;
  std::optional<double> EarlyStoppingEstimate() const;
  void Load();
  void Length();
  void Errors();
  void Bound(double bound);

  int64_t unanswered() const { return tally_.planned() - tally_.answered(); }

  const MlperfRules& rules_;
  const Tally& tally_;
  const RunOutcome& played_;
  const int rows_;
  MlperfResult result_;
};

std::optional<double> Judgement::Value() const {
  if (played_.measured_s <= 0 || tally_.answered() == 0) return std::nullopt;
  switch (rules_.scenario) {
    case MlperfScenario::kSingleStream:
    case MlperfScenario::kMultiStream:
      return EarlyStoppingEstimate();
    case MlperfScenario::kServer:
      return rows_ * static_cast<double>(tally_.planned()) / played_.measured_s;
    case MlperfScenario::kOffline:
      return rows_ * played_.throughput();
  }
  std::unreachable();
}

// LoadGen's sorted[n - t], from 0, with t the most queries over that n grants, at least 1: one rank above
// the least upper bound (stats::EstimateRank), and nothing where that is the greatest of all. In ms.
std::optional<double> Judgement::EarlyStoppingEstimate() const {
  const auto rank = stats::EstimateRank(*rules_.percentile, tally_.planned());
  if (!rank) return std::nullopt;
  const auto nanoseconds = *rank < tally_.planned() ? tally_.response.AtRank(*rank + 1) : std::nullopt;
  if (!nanoseconds) return std::nullopt;
  return 1e-6 * static_cast<double>(*nanoseconds);
}

void Judgement::Load() {
  if (rules_.samples_per_query > 0 && rows_ != rules_.samples_per_query) {
    FallShort(fmt::format("a query had {} samples, that of {} has {}: send so many rows in a request", rows_,
                          ToString(rules_.scenario), rules_.samples_per_query));
  }
}

void Judgement::Length() {
  if (played_.interrupted) FallShort("the run was interrupted: let it come to its end");
  const double least_s = Seconds(rules_.min_duration);
  if (played_.measured_s < least_s) {
    FallShort(fmt::format("{:.4g} s were measured, MLPerf asks for {:g}: measure longer", played_.measured_s,
                          least_s));
  }
  if (tally_.planned() < rules_.min_queries) {
    FallShort(fmt::format("{} queries say nothing of {}, it takes {}: measure longer", tally_.planned(),
                          Percentile(rules_.percentile.value_or(0)), rules_.min_queries));
  }
  const int64_t samples = rows_ * tally_.answered();
  if (samples < rules_.min_samples) {
    FallShort(fmt::format("{} samples were answered, MLPerf asks for {}: measure longer", samples,
                          rules_.min_samples));
  }
}

void Judgement::Errors() {
  if (unanswered() == 0) return;
  FallShort(fmt::format("{} of {} queries were not answered, MLPerf allows none: {}", unanswered(),
                        tally_.planned(),
                        played_.errors.empty() ? "load the system less" : played_.errors.front()));
}

void Judgement::Bound(double bound) {
  const double p = *rules_.percentile;
  const int64_t over = tally_.response.CountAbove(FromSeconds(bound).count()) + unanswered();
  const stats::Answer below = stats::QuantileIsBelow(p, tally_.planned(), over);
  if (below == stats::Answer::kYes) return;
  const std::string count =
      fmt::format("{} of {} queries took longer than {:g} ms", over, tally_.planned(), 1e3 * bound);
  if (below == stats::Answer::kNo) {
    FallShort(fmt::format("{}, so that {} is above it: lower the rate", count, Percentile(p)));
  } else if (tally_.planned() >= rules_.min_queries) {
    FallShort(
        fmt::format("{}, which leaves {} undecided until there are {} queries with no more such: "
                    "measure longer or lower the rate",
                    count, Percentile(p), stats::QueriesNeeded(p, over)));
  }
}

}  // namespace

Result<MlperfRules> RulesOf(MlperfScenario scenario, const MlperfTargets& targets) {
  MlperfRules rules{.scenario = scenario};
  switch (scenario) {
    case MlperfScenario::kSingleStream:
      rules.percentile = 0.90;
      rules.metric = "early-stopping estimate of p90 of the response time";
      rules.unit = "ms";
      break;
    case MlperfScenario::kMultiStream:
      rules.samples_per_query = 8;
      rules.percentile = 0.99;
      rules.metric = "early-stopping estimate of p99 of the response time";
      rules.unit = "ms";
      break;
    case MlperfScenario::kServer:
      if (!(targets.rate > 0 && std::isfinite(targets.rate)))
        return Fail(ErrorCode::kInvalidArgument,
                    "the server scenario needs the rate at which queries come: --target-rate");
      rules.play = Rate{.per_second = targets.rate, .arrivals = PoissonArrivals{}};
      rules.percentile = 0.99;
      rules.latency_bound = kServerBound;
      rules.metric = "scheduled samples";
      rules.unit = "samples/s";
      break;
    case MlperfScenario::kOffline:
      if (targets.depth < 1) {
        return Fail(ErrorCode::kInvalidArgument,
                    "the offline scenario needs the number of requests that are out at a time: --depth");
      }
      rules.play = Concurrency{.in_flight = targets.depth};
      rules.samples_per_query = 0;
      rules.min_samples = kOfflineSamples;
      rules.metric = "answered samples";
      rules.unit = "samples/s";
      break;
  }
  // LoadGen's estimate leaves one query over at the least; a bound may hold with none.
  if (rules.percentile)
    rules.min_queries = stats::QueriesNeeded(*rules.percentile, rules.latency_bound ? 0 : 1);
  return rules;
}

MlperfResult Judge(const MlperfRules& rules, const RunOutcome& played, int rows_per_query,
                   std::optional<double> latency_bound) {
  return Judgement(rules, played, rows_per_query)
      .Judge(rules.latency_bound ? latency_bound.value_or(*rules.latency_bound) : rules.latency_bound);
}

}  // namespace weir::load
