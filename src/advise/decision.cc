#include "advise/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/count.h"
#include "stats/family.h"
#include "stats/paired.h"
#include "stats/summary.h"
#include "study/measured.h"
#include "study/next_bottleneck.h"

namespace weir::advise {
namespace {

constexpr double kAlpha = 0.05;

// The trials, and the ends of the predictions among them.
struct Evidence {
  const study::Measured& measured;
  std::span<const PredictedEnds> ends;

  std::optional<Expected> Of(size_t configuration, const std::string& metric) const {
    return ExpectedOf(measured, ends, configuration, metric);
  }
  bool IsEnd(size_t configuration) const {
    return std::ranges::any_of(ends, [configuration](const PredictedEnds& one) {
      return one.fast == configuration || one.slow == configuration;
    });
  }
};

// Logarithms by which a metric may lie lower and higher for the prediction's sake; 0 without ends.
struct Spread {
  double down = 0, up = 0;
};

Spread SpreadOf(const Evidence& evidence, size_t configuration, const std::string& metric) {
  const auto ends = std::ranges::find(evidence.ends, configuration, &PredictedEnds::middle);
  if (ends == evidence.ends.end()) return {};
  const auto middle = stats::Summarise(evidence.measured.Values(configuration, metric));
  if (!middle || !(middle->mean > 0)) return {};
  Spread spread;
  for (const size_t end : {ends->fast, ends->slow}) {
    const auto there = stats::Summarise(evidence.measured.Values(end, metric));
    if (!there || !(there->mean > 0)) continue;
    const double log = std::log(there->mean / middle->mean);
    spread.down = std::max(spread.down, -log);
    spread.up = std::max(spread.up, log);
  }
  return spread;
}

struct Share {
  int64_t valid = 0, all = 0;
  bool mostly_valid() const { return 2 * valid > all; }
};

std::vector<Share> CountShares(const study::Design& design, std::span<const study::PlayedTrials> played) {
  std::vector<Share> shares(design.configurations.size());
  for (const study::PlayedTrials* one : study::LastTries(played)) {
    if (one->trial.is_reference() || one->trial.configuration >= shares.size()) continue;
    Share& share = shares[one->trial.configuration];
    share.valid += one->record.verdict.standing == results::Standing::kValid;
    share.all += one->record.verdict.standing != results::Standing::kSkipped;
  }
  return shares;
}

bool IsEmulated(const Json& factors) {
  if (factors.contains("accelerator")) return true;
  const auto engine = factors.find("engine");
  return engine != factors.end() && engine->is_string() && engine->get<std::string>().starts_with("emulated");
}

Standing JudgeTarget(const Target& target, const std::optional<Expected>& figure) {
  if (!figure) return Standing::kNotMeasured;
  if (!figure->low || !figure->high) return Standing::kUndecided;
  if (target.at_most ? *figure->high <= target.limit : *figure->low >= target.limit) return Standing::kMeets;
  const bool misses = target.at_most ? *figure->low > target.limit : *figure->high < target.limit;
  return misses ? Standing::kMisses : Standing::kUndecided;
}

void JudgeTargets(const Evidence& evidence, const Goal& goal, Candidate& candidate) {
  for (const Target& target : goal.targets) {
    const auto figure = evidence.Of(candidate.configuration, target.metric);
    const Standing standing = JudgeTarget(target, figure);
    if (standing == Standing::kMeets) continue;
    if (candidate.standing != Standing::kMeets && standing != Standing::kMisses) continue;
    candidate.standing = standing;
    candidate.why = target.text;
  }
}

void AddCost(const Json& factors, const Goal& goal, Candidate& candidate) {
  const double sure = candidate.throughput.low.value_or(candidate.throughput.value);
  if (goal.rate && sure > 0) candidate.instances = static_cast<int64_t>(std::ceil(*goal.rate / sure));
  const auto price = PriceOf(factors, goal);
  if (!price || !(candidate.throughput.value > 0)) return;
  candidate.cost_per_million_images = *price / (3600 * candidate.throughput.value) * 1e6;
  candidate.cost_per_hour = *price * static_cast<double>(candidate.instances.value_or(1));
}

// Returns the objective as a number of which less is better; nullopt if it was not measured.
std::optional<double> ObjectiveOf(const Candidate& candidate, const Goal& goal) {
  if (goal.objective == Objective::kThroughput) return 1 / candidate.throughput.value;
  if (goal.objective == Objective::kMemory)
    return candidate.memory_bytes ? std::optional(candidate.memory_bytes->value) : std::nullopt;
  return goal.rate ? candidate.cost_per_hour : candidate.cost_per_million_images;
}

std::string MetricOf(const Goal& goal) {
  return goal.objective == Objective::kMemory ? kMemoryMetric : kThroughputMetric;
}

// Returns the log ratios of the objective, candidate over best and above 0 where the best is better, in the
// blocks that both have.
std::vector<double> LogRatios(const study::Measured& measured, const study::Design& design, const Goal& goal,
                              const Candidate& best, const Candidate& other) {
  const bool memory = goal.objective == Objective::kMemory;
  const std::string metric = MetricOf(goal);
  double constant = 0;
  if (goal.objective == Objective::kCost)
    constant = std::log(*PriceOf(design.configurations[other.configuration].factors, goal) /
                        *PriceOf(design.configurations[best.configuration].factors, goal));
  const auto of_best = measured.ByBlock(best.configuration, metric);
  std::vector<double> logs;
  for (const auto& [block, value] : measured.ByBlock(other.configuration, metric)) {
    const auto found = of_best.find(block);
    if (found == of_best.end() || !(value > 0) || !(found->second > 0)) continue;
    const double log = std::log(value / found->second);
    logs.push_back(constant + (memory ? log : -log));
  }
  return logs;
}

// Widens the ratio of the best over another by what the predictions of their accelerators leave open. The two
// are taken as independent.
void Widen(const Evidence& evidence, const Goal& goal, const Candidate& best, const Candidate& other,
           stats::Ratio& ratio) {
  Spread of_best = SpreadOf(evidence, best.configuration, MetricOf(goal));
  Spread of_other = SpreadOf(evidence, other.configuration, MetricOf(goal));
  if (goal.objective == Objective::kMemory) {  // less is better
    std::swap(of_best.down, of_best.up);
    std::swap(of_other.down, of_other.up);
  }
  if (!ratio.low || !ratio.high || !(*ratio.low > 0)) return;
  const double down = std::hypot(std::log(ratio.ratio / *ratio.low), of_best.down, of_other.up);
  const double up = std::hypot(std::log(*ratio.high / ratio.ratio), of_best.up, of_other.down);
  ratio.low = ratio.ratio * std::exp(-down);
  ratio.high = ratio.ratio * std::exp(up);
}

void CompareWithBest(const Evidence& evidence, const study::Design& design, const Goal& goal,
                     const std::vector<size_t>& order, Decision& decision) {
  decision.best = order[0];
  if (order.size() < 2) return;
  decision.runner_up = order[1];
  const Candidate& best = decision.candidates[order[0]];
  const Candidate& other = decision.candidates[order[1]];
  const size_t family = order.size() - 1;
  const auto logs = LogRatios(evidence.measured, design, goal, best, other);
  decision.adjusted_p = stats::SimultaneousP(stats::PairedP(logs), family);
  auto ratio = stats::RatioOfLogs(logs, stats::SimultaneousConfidence(1 - kAlpha, family));
  if (!ratio) return;
  Widen(evidence, goal, best, other, *ratio);
  decision.difference_low = ratio->low;
  decision.difference_high = ratio->high;
  decision.significant = ratio->low && *ratio->low > 1;
}

void AddMeasureNext(const study::Design& design, const Goal& goal, Decision& decision) {
  const auto label = [&](const Candidate& one) { return design.configurations[one.configuration].label; };
  int64_t disturbed = 0;
  for (const Candidate& one : decision.candidates) {
    disturbed += one.standing == Standing::kDisturbed;
    if (one.standing == Standing::kUndecided)
      decision.measure_next.push_back(fmt::format("{}: more repeats, as {} trials do not decide {}",
                                                  label(one), one.throughput.n, one.why));
    if (one.standing == Standing::kNotMeasured)
      decision.measure_next.push_back(
          fmt::format("{}: a study whose trials measure {}", label(one), one.why));
  }
  if (disturbed > 0)
    decision.measure_next.push_back(fmt::format(
        "the disturbed configurations again on a quiet machine ({}): weir doctor names the disturbance",
        disturbed));
  if (decision.best && decision.runner_up && !decision.significant)
    decision.measure_next.push_back(fmt::format("{} against {}, more repeats: no difference is shown",
                                                label(decision.candidates[*decision.best]),
                                                label(decision.candidates[*decision.runner_up])));
  if (goal.objective == Objective::kCost && goal.price_per_hour.empty())
    decision.measure_next.push_back("nothing before prices are given: --price NAME=VALUE");
}

// Returns how the most of the trials ended of which none counts, with the words of one of them.
std::string WhyNoneCounts(std::span<const study::PlayedTrials> played) {
  std::map<results::Standing, int64_t> ends;
  for (const study::PlayedTrials* one : study::LastTries(played)) ++ends[one->record.verdict.standing];
  if (ends.empty()) return "no trial counts: none was played";
  const auto [standing, count] =
      *std::ranges::max_element(ends, {}, [](const auto& one) { return one.second; });
  const auto example = std::ranges::find(
      played, standing, [](const study::PlayedTrials& one) { return one.record.verdict.standing; });
  const results::Verdict& verdict = example->record.verdict;
  std::string why = verdict.message;
  if (why.empty() && !verdict.causes.empty()) why = verdict.causes.front().evidence;
  return fmt::format("no trial counts: {} of {} are {}{}{}", count, std::ssize(study::LastTries(played)),
                     results::ToString(standing), why.empty() ? "" : ", as in: ", why);
}

std::string NoAnswer(const Decision& decision, std::span<const study::PlayedTrials> played, int64_t valid,
                     int64_t all) {
  if (decision.candidates.empty()) return WhyNoneCounts(played);
  const auto count = [&](Standing standing) {
    return std::ranges::count(decision.candidates, standing, &Candidate::standing);
  };
  const int64_t total = std::ssize(decision.candidates);
  if (count(Standing::kDisturbed) == total)
    return fmt::format("{} of {} trials are not VALID", all - valid, all);
  if (count(Standing::kMisses) > 0 && count(Standing::kMisses) + count(Standing::kDisturbed) == total)
    return "no configuration meets the targets";
  if (count(Standing::kMeets) > 0) return "the objective was not measured, or a price is missing";
  return "the trials do not decide whether a configuration meets the targets";
}

results::AdviceResult::Cost CostOf(const Candidate& candidate) {
  return {.instances = candidate.instances,
          .per_hour = candidate.cost_per_hour,
          .per_million_images = candidate.cost_per_million_images};
}

results::AdviceResult::Candidate ToResult(const Candidate& candidate, const study::Design& design) {
  const study::Configuration& configuration = design.configurations[candidate.configuration];
  return {.label = configuration.label,
          .factors = configuration.factors,
          .standing = std::string(ToString(candidate.standing)),
          .why = candidate.why,
          .expected = {.throughput_images_per_s = candidate.throughput,
                       .p99_ms = candidate.p99_ms,
                       .memory_bytes = candidate.memory_bytes},
          .cost = CostOf(candidate)};
}

}  // namespace

std::vector<std::string> PricedNames(const Json& factors) {
  std::vector<std::string> names;
  if (const std::string accelerator = factors.value("accelerator", std::string()); !accelerator.empty())
    names.push_back(accelerator);
  names.push_back(factors.value("architecture", std::string("in-process")));
  return names;
}

std::optional<double> PriceOf(const Json& factors, const Goal& goal) {
  for (const std::string& name : PricedNames(factors)) {
    const auto price = goal.price_per_hour.find(name);
    if (price != goal.price_per_hour.end()) return price->second;
  }
  return std::nullopt;
}

std::string_view ToString(Standing standing) {
  switch (standing) {
    case Standing::kMeets:
      return "meets";
    case Standing::kMisses:
      return "misses";
    case Standing::kUndecided:
      return "undecided";
    case Standing::kNotMeasured:
      return "not measured";
    case Standing::kDisturbed:
      return "disturbed";
  }
  return "";
}

std::optional<Expected> ExpectedOf(const study::Measured& measured, std::span<const PredictedEnds> ends,
                                   size_t configuration, const std::string& metric) {
  const auto summary = stats::Summarise(measured.Values(configuration, metric));
  if (!summary) return std::nullopt;
  Expected expected{.n = summary->n, .value = summary->mean, .low = summary->low, .high = summary->high};
  const Spread spread = SpreadOf({.measured = measured, .ends = ends}, configuration, metric);
  if (expected.low && *expected.low > 0 && expected.value > 0)
    expected.low =
        expected.value * std::exp(-std::hypot(std::log(expected.value / *expected.low), spread.down));
  if (expected.high && expected.value > 0)
    expected.high =
        expected.value * std::exp(std::hypot(std::log(*expected.high / expected.value), spread.up));
  return expected;
}

Decision Decide(const study::Design& design, std::span<const study::PlayedTrials> played, const Goal& goal,
                std::span<const PredictedEnds> ends) {
  const study::Measured measured(design, played);
  const Evidence evidence{.measured = measured, .ends = ends};
  const std::vector<Share> shares = CountShares(design, played);
  Decision decision;
  int64_t valid = 0, all = 0, real = 0;
  for (size_t i = 0; i < design.configurations.size(); ++i) {
    valid += shares[i].valid;
    all += shares[i].all;
    const auto throughput = evidence.Of(i, kThroughputMetric);
    if (evidence.IsEnd(i) || !throughput || !(throughput->value > 0)) continue;
    const Json& factors = design.configurations[i].factors;
    Candidate candidate{.configuration = i,
                        .throughput = *throughput,
                        .p99_ms = evidence.Of(i, kP99Metric),
                        .memory_bytes = evidence.Of(i, kMemoryMetric)};
    if (shares[i].mostly_valid()) {
      JudgeTargets(evidence, goal, candidate);
    } else {
      candidate.standing = Standing::kDisturbed;
      candidate.why =
          fmt::format("{} of {} trials are not VALID", shares[i].all - shares[i].valid, shares[i].all);
    }
    AddCost(factors, goal, candidate);
    real += !IsEmulated(factors);  // a predicted accelerator is emulated too
    decision.candidates.push_back(std::move(candidate));
  }
  std::vector<size_t> order;
  int64_t emulated_left_out = 0;
  for (size_t i = 0; i < decision.candidates.size(); ++i) {
    const Candidate& one = decision.candidates[i];
    const bool apart = real > 0 && IsEmulated(design.configurations[one.configuration].factors);
    emulated_left_out += apart;
    if (!apart && one.standing == Standing::kMeets && ObjectiveOf(one, goal)) order.push_back(i);
  }
  if (emulated_left_out > 0)
    decision.notes.push_back(
        fmt::format("{} configurations of an emulated accelerator are not ranked against real engines",
                    emulated_left_out));
  std::ranges::stable_sort(order, {}, [&](size_t i) { return *ObjectiveOf(decision.candidates[i], goal); });
  if (order.empty())
    decision.no_answer = NoAnswer(decision, played, valid, all);
  else
    CompareWithBest(evidence, design, goal, order, decision);
  if (decision.best) {
    const size_t index = decision.candidates[*decision.best].configuration;
    const auto bottleneck = study::FindNextBottleneck(index, measured, study::AnalysisOptions{});
    if (bottleneck) decision.bottleneck = bottleneck->stage;
  }
  AddMeasureNext(design, goal, decision);
  return decision;
}

results::AdviceResult MakeAdvice(const Decision& decision, const study::Design& design, const Goal& goal) {
  results::AdviceResult advice{.objective = std::string(ToString(goal.objective)),
                               .rate_images_per_s = goal.rate,
                               .no_answer = decision.no_answer,
                               .notes = decision.notes,
                               .measure_next = decision.measure_next};
  for (const Target& target : goal.targets) advice.targets.push_back(target.text);
  for (const Candidate& one : decision.candidates) advice.candidates.push_back(ToResult(one, design));
  if (decision.best) {
    const results::AdviceResult::Candidate& best = advice.candidates[*decision.best];
    advice.best = {.configuration = best.factors,
                   .label = best.label,
                   .expected = {.throughput = best.expected.throughput_images_per_s,
                                .metric = kThroughputMetric,
                                .all = best.expected},
                   .cost = best.cost,
                   .bottleneck = decision.bottleneck};
  }
  if (decision.runner_up)
    advice.comparison = {.runner_up = advice.candidates[*decision.runner_up],
                         .significant = decision.significant,
                         .adjusted_p = decision.adjusted_p,
                         .advantage_low = decision.difference_low,
                         .advantage_high = decision.difference_high};
  return advice;
}

std::string AdviceText(const TextStyle& style, const results::AdviceResult& advice) {
  const auto figure = [](const Expected& expected, const char* unit) {
    return expected.low && expected.high ? fmt::format("{} {} ({} to {})", Short(expected.value), unit,
                                                       Short(*expected.low), Short(*expected.high))
                                         : fmt::format("{} {}, a single trial", Short(expected.value), unit);
  };
  std::string text;
  if (advice.best) {
    const results::AdviceResult::Best& best = *advice.best;
    text = fmt::format("{}: {}", style.Bold(best.label), figure(best.expected.throughput, "images/s"));
    if (best.expected.all.p99_ms) text += fmt::format(", p99 {}", figure(*best.expected.all.p99_ms, "ms"));
    if (best.cost.instances) text += fmt::format(", {}", Count(*best.cost.instances, "instance"));
    if (best.cost.per_hour) text += fmt::format(", {} an hour", Short(*best.cost.per_hour));
    text += "\n";
    if (!best.bottleneck.empty()) text += fmt::format("bottleneck: {}\n", best.bottleneck);
  } else {
    text = fmt::format("{}: {}\n", style.Bold("no answer"), advice.no_answer);
  }
  if (const auto& compared = advice.comparison) {
    text += fmt::format("runner-up: {}; the difference is {}", compared->runner_up.label,
                        compared->significant ? "significant" : "not significant");
    if (compared->advantage_low && compared->advantage_high)
      text += fmt::format(" (advantage {:.3f} to {:.3f} times)", *compared->advantage_low,
                          *compared->advantage_high);
    text += "\n";
  }
  for (const std::string& note : advice.notes) text += "note: " + note + "\n";
  for (const std::string& next : advice.measure_next) text += "measure next: " + next + "\n";
  return text;
}

}  // namespace weir::advise
