#include "study/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/count.h"
#include "stats/summary.h"

namespace weir::study {
namespace {

constexpr const char* kRate = "throughput_images_per_s";
constexpr const char* kP99 = "response_ms.p99";
constexpr const char* kPrice = "price_per_million_images";

std::optional<double> MeanOf(const Measured& measured, size_t configuration, const std::string& metric) {
  const auto summary = stats::Summarise(measured.Values(configuration, metric));
  return summary ? std::optional(summary->mean) : std::nullopt;
}

// How configurations are ranked: by the objective, or by the price of an image where a goal and prices are
// given.
class Ranking {
 public:
  Ranking(const StudyFile& study, const Design& design, const Measured& measured,
          const AnalysisOptions& options)
      : study_(study), design_(design), measured_(measured), options_(options) {
    const bool has_target = study.targets.p99_ms || study.targets.images_per_s;
    by_price_ = has_target && std::ranges::all_of(design.configurations, [&](const Configuration& one) {
                  return PricePerHour(study.targets, one).has_value();
                });
  }

  std::string metric() const { return by_price_ ? kPrice : study_.objective.metric; }

  // Returns a number of which less is better; nullopt where it was not measured.
  std::optional<double> Score(size_t configuration) const {
    const auto mean = MeanOf(measured_, configuration, by_price_ ? kRate : study_.objective.metric);
    if (!mean) return std::nullopt;
    if (by_price_)
      return *mean > 0
                 ? std::optional(*PricePerHour(study_.targets, design_.configurations[configuration]) / *mean)
                 : std::nullopt;
    return study_.objective.better == Better::kHigher ? -*mean : *mean;
  }

  // Returns `other` over `best`; of prices, the ratio of the prices of an image.
  std::optional<Comparison> Compare(size_t other, size_t best) const {
    if (!by_price_) return study::Compare(measured_, other, best, study_.objective.metric, options_);
    std::vector<double> logs = LogRatios(measured_, other, best, kRate);
    const double price = std::log(*PricePerHour(study_.targets, design_.configurations[other]) /
                                  *PricePerHour(study_.targets, design_.configurations[best]));
    for (double& log : logs) log = price - log;
    const auto tested = TestLogs(logs, options_);
    if (!tested) return std::nullopt;
    Comparison comparison;
    static_cast<Tested&>(comparison) = *tested;
    comparison.configuration = other;
    comparison.against = best;
    comparison.metric = kPrice;
    return comparison;
  }

 private:
  const StudyFile& study_;
  const Design& design_;
  const Measured& measured_;
  const AnalysisOptions& options_;
  bool by_price_ = false;
};

Answer Rank(const Ranking& ranking, const Measured& measured, const StudyFile& study,
            const std::vector<size_t>& group, const AnalysisOptions& options) {
  std::vector<std::pair<double, size_t>> order;
  for (const size_t i : group) order.emplace_back(*ranking.Score(i), i);
  std::ranges::stable_sort(order, {}, &std::pair<double, size_t>::first);
  Answer answer{.ranked_by = ranking.metric(), .best = order[0].second};
  answer.mean = MeanOf(measured, answer.best, study.objective.metric).value_or(0);
  for (size_t i = 1; i < order.size(); ++i) {
    if (auto other = ranking.Compare(order[i].second, answer.best))
      answer.others.push_back(std::move(*other));
  }
  std::vector<Tested*> family;
  for (Comparison& one : answer.others) family.push_back(&one);
  AdjustFamily(family, options);
  return answer;
}

std::string CauseWords(results::Reason reason) {
  if (reason == results::Reason::kForeignCpu) return "were disturbed by other processes";
  if (reason == results::Reason::kSteal) return "lost CPU time to the hypervisor";
  if (reason == results::Reason::kThrottling) return "were held back by a CPU quota";
  return fmt::format("are not VALID for {}", ToString(reason));
}

// "68 of 69 trials were disturbed by other processes": the commonest cause of those that are not VALID.
std::string WhyNotValid(std::span<const PlayedTrials> played) {
  std::map<results::Reason, int64_t> causes;
  int64_t all = 0, bad = 0, failed = 0;
  for (const PlayedTrials* one : LastTries(played)) {
    const results::Verdict& verdict = one->record.verdict;
    if (verdict.standing == results::Standing::kSkipped) continue;
    ++all;
    bad += verdict.standing != results::Standing::kValid;
    failed += verdict.standing == results::Standing::kFailed;
    for (const results::Cause& cause : verdict.causes) ++causes[cause.reason];
  }
  if (all == 0) return "every trial was skipped: this machine cannot play them";
  if (causes.empty()) return fmt::format("{} of {} trials failed", failed, all);
  const auto commonest = std::ranges::max_element(causes, {}, [](const auto& one) { return one.second; });
  if (commonest->second == bad)
    return fmt::format("{} of {} trials {}", bad, all, CauseWords(commonest->first));
  return fmt::format("{} of {} trials are not VALID; {} {}", bad, all, commonest->second,
                     CauseWords(commonest->first));
}

std::string WhyNoneMeets(const std::vector<TargetStandings>& standings) {
  std::map<TargetStanding, int64_t> counts;
  for (const TargetStandings& one : standings) {
    TargetStanding worst = TargetStanding::kMet;
    for (const auto& target : {one.p99, one.rate}) {
      if (!target || *target == TargetStanding::kMet) continue;
      if (worst != TargetStanding::kMissed) worst = *target;
    }
    ++counts[worst];
  }
  if (counts[TargetStanding::kMissed] == std::ssize(standings)) return "no configuration meets the targets";
  std::string text = "no configuration is shown to meet the targets:";
  for (const TargetStanding one :
       {TargetStanding::kMissed, TargetStanding::kUndecided, TargetStanding::kNotMeasured}) {
    if (counts[one] > 0)
      text += fmt::format("{} {} {}", text.ends_with(':') ? "" : ",", counts[one], ToString(one));
  }
  return text;
}

}  // namespace

bool IsEmulated(const Configuration& configuration) {
  for (const char* key : {"accelerator", "engine"}) {
    const auto level = configuration.factors.find(key);
    if (level != configuration.factors.end() && level->is_string() &&
        level->get_ref<const std::string&>().starts_with("emulated"))
      return true;
  }
  return false;
}

std::string_view ToString(TargetStanding standing) {
  switch (standing) {
    case TargetStanding::kMet:
      return "met";
    case TargetStanding::kMissed:
      return "missed";
    case TargetStanding::kUndecided:
      return "undecided";
    case TargetStanding::kNotMeasured:
      return "not measured";
  }
  return "";
}

TargetStanding JudgeTarget(const Measured& measured, size_t configuration, const std::string& metric,
                           double limit, bool at_most, const AnalysisOptions& options) {
  const auto summary = stats::Summarise(measured.Values(configuration, metric), options.confidence);
  if (!summary) return TargetStanding::kNotMeasured;
  if (!summary->low || !summary->high) return TargetStanding::kUndecided;
  if (at_most ? *summary->high <= limit : *summary->low >= limit) return TargetStanding::kMet;
  if (at_most ? *summary->low > limit : *summary->high < limit) return TargetStanding::kMissed;
  return TargetStanding::kUndecided;
}

TargetStandings JudgeTargets(const Measured& measured, size_t configuration, const Targets& targets,
                             const AnalysisOptions& options) {
  TargetStandings standings;
  if (targets.p99_ms)
    standings.p99 = JudgeTarget(measured, configuration, kP99, *targets.p99_ms, true, options);
  if (targets.images_per_s)
    standings.rate = JudgeTarget(measured, configuration, kRate, *targets.images_per_s, false, options);
  return standings;
}

std::optional<double> PricePerHour(const Targets& targets, const Configuration& configuration) {
  const std::string architecture = configuration.factors.value("architecture", std::string("in-process"));
  const auto price = targets.price_per_hour.find(architecture);
  return price == targets.price_per_hour.end() ? std::nullopt : std::optional(price->second);
}

Answers FindAnswers(const StudyFile& study, const Design& design, const Measured& measured,
                    const std::vector<Tally>& tallies, std::span<const PlayedTrials> played,
                    const AnalysisOptions& options) {
  const Ranking ranking(study, design, measured, options);
  Answers found;
  std::vector<size_t> real, emulated;
  std::vector<TargetStandings> standings;
  bool has_real = false, has_emulated = false;
  int64_t measured_count = 0;
  for (size_t i = 0; i < design.configurations.size(); ++i) {
    if (design.configurations[i].waterfall_only || !ranking.Score(i)) continue;
    ++measured_count;
    const bool is_emulated = IsEmulated(design.configurations[i]);
    (is_emulated ? has_emulated : has_real) = true;
    if (!tallies[i].mostly_valid()) continue;
    standings.push_back(JudgeTargets(measured, i, study.targets, options));
    if (standings.back().all_met()) (is_emulated ? emulated : real).push_back(i);
  }
  for (const auto& [group, name] :
       {std::pair{&real, "real engines"}, std::pair{&emulated, "emulated accelerators"}}) {
    if (group->empty()) continue;
    found.answers.push_back(Rank(ranking, measured, study, *group, options));
    if (has_real && has_emulated) found.answers.back().among = name;
  }
  if (!found.answers.empty()) return found;
  if (measured_count == 0 && !measured.metrics().empty())
    found.none = fmt::format("no trial has the metric that decides, {}", ranking.metric());
  else if (standings.empty())
    found.none = played.empty() ? "no trial was played" : WhyNotValid(played);
  else
    found.none = WhyNoneMeets(standings);
  return found;
}

}  // namespace weir::study
