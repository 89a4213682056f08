#include "study/result.h"

#include <algorithm>
#include <set>
#include <utility>

#include "study/factor.h"
#include "study/figures.h"
#include "study/latency.h"

namespace weir::study {
namespace {

using results::StudyResult;

template <typename To, typename From, typename Convert>
std::vector<To> ConvertAll(const std::vector<From>& from, Convert convert) {
  std::vector<To> to;
  to.reserve(from.size());
  for (const From& one : from) to.push_back(convert(one));
  return to;
}

results::TrialCounts ToResult(const Tally& tally) {
  return {.valid = tally.valid,
          .suspect = tally.suspect,
          .invalid = tally.invalid,
          .failed = tally.failed,
          .skipped = tally.skipped,
          .planned = {},
          .retried = {}};
}

results::RatioFigures ToResult(const stats::Ratio& ratio) {
  return {.n = ratio.n,
          .ratio = ratio.ratio,
          .low = ratio.low,
          .high = ratio.high,
          .log_deviation = ratio.log_deviation};
}

std::optional<results::RatioFigures> ToResult(const std::optional<stats::Ratio>& ratio) {
  return ratio ? std::optional(ToResult(*ratio)) : std::nullopt;
}

StudyResult::Comparison ToComparison(const Comparison& one) {
  return {.configuration = one.configuration,
          .against = one.against,
          .metric = one.metric,
          .tested = ToTested(static_cast<const Tested&>(one))};
}

StudyResult::Pair ToPair(const Comparison& one, const Design& design) {
  return {.configuration = one.configuration,
          .label = design.configurations[one.configuration].label,
          .against = design.configurations[one.against].label,
          .tested = ToTested(static_cast<const Tested&>(one))};
}

StudyResult::Effect ToEffect(const Effect& effect, const Design& design) {
  StudyResult::Effect result{.factor = effect.factor,
                             .from = LevelText(effect.factor, effect.from),
                             .to = LevelText(effect.factor, effect.to),
                             .metric = effect.metric,
                             .pairs = effect.pairs,
                             .acts = std::string(ToString(effect.acts)),
                             .pairs_higher = effect.higher,
                             .pairs_lower = effect.lower,
                             .tested = ToTested(static_cast<const Tested&>(effect)),
                             .least = {},
                             .most = {},
                             .by_level = {}};
  if (effect.each.size() > 1) {
    const auto by_ratio = [](const Comparison& one) { return one.ratio.ratio; };
    const auto [least, most] = std::ranges::minmax_element(effect.each, {}, by_ratio);
    result.least = ToPair(*least, design);
    result.most = ToPair(*most, design);
  }
  for (const LevelEffect& one : effect.by_level)
    result.by_level.push_back(
        {.factor = one.other,
         .level = one.level.is_null() ? "not applicable" : LevelText(one.other, one.level),
         .pairs = one.pairs,
         .tested = ToTested(static_cast<const Tested&>(one))});
  return result;
}

StudyResult::Variance ToResult(const VarianceTable& table) {
  StudyResult::Variance result{.metric = table.metric, .trials = table.trials, .left_out = table.left_out};
  if (!table.left_out.empty()) return result;
  result.residual_degrees = table.residual_degrees;
  result.residual_deviation = table.residual_deviation;
  result.normality_p = table.normality_p;
  result.durbin_watson = table.durbin_watson;
  result.aliased = ConvertAll<StudyResult::AliasedTerm>(table.aliased, [](const AliasedTerm& term) {
    return StudyResult::AliasedTerm{.factors = term.factors,
                                    .degrees = term.degrees,
                                    .own_degrees = term.own_degrees,
                                    .with = term.with,
                                    .not_applicable = term.not_applicable};
  });
  result.terms = ConvertAll<StudyResult::VarianceTerm>(table.terms, [](const VarianceTerm& term) {
    return StudyResult::VarianceTerm{.factors = term.factors,
                                     .degrees = term.degrees,
                                     .f = term.f,
                                     .p = term.p,
                                     .adjusted_p = term.adjusted_p,
                                     .share = term.share};
  });
  return result;
}

StudyResult::Phases ToResult(const PhaseTable& table) {
  StudyResult::Phases result{.kept = {}, .recommended = table.recommended, .why_not = table.why_not};
  if (!table.recommended.empty()) result.least_kept = table.least_kept;
  result.kept = ConvertAll<StudyResult::PhaseKept>(table.kept, [](const PhaseKept& one) {
    return StudyResult::PhaseKept{.phase = one.phase,
                                  .metric = one.metric,
                                  .limits = one.limits,
                                  .configuration = one.configuration,
                                  .against = one.against,
                                  .alone = one.alone,
                                  .together = one.together,
                                  .tested = ToTested(static_cast<const Tested&>(one))};
  });
  return result;
}

StudyResult::Outlier ToOutlier(const OutlierTrial& one, const Design& design) {
  return {.configuration = one.configuration,
          .label = design.configurations[one.configuration].label,
          .block = one.block,
          .position = one.position,
          .value = one.value,
          .ratio = one.ratio,
          .t = one.t,
          .p = one.p,
          .evidence = one.evidence};
}

StudyResult::Milliseconds ToMilliseconds(const stats::Summary& summary) {
  return {.mean_ms = summary.mean, .low_ms = summary.low, .high_ms = summary.high};
}

StudyResult::Waterfall ToResult(const Waterfall& waterfall) {
  StudyResult::Waterfall result{.left_out = waterfall.left_out};
  if (!waterfall.left_out.empty()) return result;
  result.steps = ConvertAll<StudyResult::WaterfallStep>(waterfall.steps, [](const WaterfallStep& one) {
    return StudyResult::WaterfallStep{
        .name = one.name,
        .change = one.change,
        .configuration = one.configuration,
        .blocks = one.blocks,
        .total_ms = one.total,
        .p = one.p,
        .adjusted_p = one.adjusted_p,
        .step = ToMilliseconds(*one.step),
        .whole = one.whole ? std::optional(ToMilliseconds(*one.whole)) : std::nullopt,
        .by_events = one.by_events};
  });
  result.missing = waterfall.missing;
  result.added = ToMilliseconds(*waterfall.added);
  return result;
}

StudyResult::Bottleneck ToResult(const NextBottleneck& one) {
  return {.stage = one.stage,
          .times = one.times,
          .of = one.of,
          .bound = one.bound,
          .next = one.next,
          .next_bound = one.next_bound,
          .gain = ToResult(one.gain),
          .contradiction = one.contradiction};
}

StudyResult::Drift ToResult(const StudyDrift& drift) {
  StudyResult::Drift result{.metric = drift.metric,
                            .blocks = drift.blocks,
                            .flagged = drift.flagged,
                            .shown = drift.shown,
                            .change = drift.change,
                            .low = drift.low,
                            .high = drift.high,
                            .limit = drift.limit,
                            .within_block = ToResult(drift.within_block),
                            .trend = {},
                            .restless_blocks = {}};
  if (drift.trend) result.trend = {.rho = drift.trend->rho, .p_value = drift.trend->p_value};
  for (const RestlessBlock& one : drift.restless)
    result.restless_blocks.push_back({.block = one.block, .ratio = one.ratio, .evidence = one.evidence});
  return result;
}

Json LevelTexts(const Json& factors) {
  Json levels = Json::object();
  for (const auto& [factor, level] : factors.items()) levels[factor] = LevelText(factor, level);
  return levels;
}

StudyResult::Row ToRow(const PlayedTrials& played, const Design& design, bool last) {
  const Trial& trial = played.trial;
  const bool known = trial.configuration < design.configurations.size();
  Json metrics = Json::object();
  const FlatMetrics flat = Flatten(played.record.metrics);
  for (const auto& [name, value] : flat.numbers) metrics[name] = value;
  for (const auto& [name, word] : flat.words) metrics[name] = word;
  return {.id = trial.id,
          .attempt = played.attempt,
          .counts = last && Counts(played),
          .configuration = trial.configuration,
          .label = known ? design.configurations[trial.configuration].label : "",
          .block = trial.block,
          .position = trial.position,
          .role = std::string(ToString(trial.role)),
          .seed = trial.seed,
          .took_s = played.took_s,
          .levels = LevelTexts(played.record.factors),
          .verdict = played.record.verdict,
          .metrics = std::move(metrics),
          .command = played.record.command,
          .server_command = played.record.server_command};
}

std::vector<StudyResult::Row> FindRows(const ResultInputs& inputs) {
  const std::vector<const PlayedTrials*> tries = LastTries(inputs.journal.played);
  const std::set<const PlayedTrials*> last(tries.begin(), tries.end());
  return ConvertAll<StudyResult::Row>(inputs.journal.played, [&](const PlayedTrials& played) {
    return ToRow(played, inputs.design, last.contains(&played));
  });
}

results::StudyDesign::Configuration ToResult(const Configuration& one) {
  return {.label = one.label,
          .factors = one.factors,
          .levels = LevelTexts(one.factors),
          .waterfall_only = one.waterfall_only};
}

std::vector<StudyResult::Configuration> FindConfigurations(const ResultInputs& inputs,
                                                           const Analysis& analysis,
                                                           const Measured& measured) {
  std::vector<StudyResult::Configuration> list;
  for (size_t i = 0; i < analysis.configurations.size(); ++i) {
    const ConfigurationResult& result = analysis.configurations[i];
    const Configuration& configuration = inputs.design.configurations[i];
    StudyResult::Configuration one{
        .index = i,
        .design = ToResult(configuration),
        .trials = ToResult(result.tally),
        .skipped_why = result.skipped_why,
        .metrics = {},
        .words = result.words,
        .bottleneck = {},
        .emulated = IsEmulated(configuration),
        .most_trials_valid = result.tally.mostly_valid(),
        .targets = FindTargets(inputs.study.targets, configuration, i, measured, inputs.options)};
    for (const Figures& figures : result.metrics)
      one.metrics.all.emplace_back(figures.metric, ToFigures(figures.summary, figures.median));
    if (result.bottleneck) one.bottleneck = ToResult(*result.bottleneck);
    list.push_back(std::move(one));
  }
  return list;
}

StudyResult::Answer ToAnswer(const Answer& answer, const std::string& metric) {
  return {.metric = metric,
          .ranked_by = answer.ranked_by,
          .best = answer.best,
          .mean = answer.mean,
          .others = ConvertAll<StudyResult::Comparison>(answer.others, ToComparison),
          .among = answer.among};
}

results::StudySettings ToSettings(const StudyFile& study) {
  return {.all = study.ToJson(),
          .name = study.name,
          .question = study.question,
          .metric = study.objective.metric,
          .higher_is_better = study.objective.better == Better::kHigher,
          .seed = study.seed,
          .server_host = study.server_host.value_or("")};
}

}  // namespace

results::Figures ToFigures(const stats::Summary& summary, const stats::MedianInterval& median) {
  return {.n = summary.n,
          .mean = summary.mean,
          .standard_deviation = summary.standard_deviation,
          .standard_error = summary.standard_error,
          .low = summary.low,
          .high = summary.high,
          .median = summary.median,
          .median_low = median.low,
          .median_high = median.high,
          .median_coverage = median.coverage,
          .min = summary.min,
          .max = summary.max};
}

results::TestedRatio ToTested(const Tested& tested) {
  return {.ratio = ToResult(tested.ratio),
          .p = tested.p,
          .adjusted_p = tested.adjusted_p,
          .told = std::string(ToString(tested.told)),
          .limit = tested.limit,
          .smallest_difference = tested.smallest_difference};
}

StudyResult::Targets FindTargets(const Targets& targets, const Configuration& configuration, size_t index,
                                 const Measured& measured, const AnalysisOptions& options) {
  StudyResult::Targets result;
  const TargetStandings standings = JudgeTargets(measured, index, targets, options);
  if (standings.p99)
    result.p99_ms = {.at_most = *targets.p99_ms, .verdict = std::string(ToString(*standings.p99))};
  if (standings.rate)
    result.images_per_s = {.at_least = *targets.images_per_s,
                           .verdict = std::string(ToString(*standings.rate))};
  const auto price = PricePerHour(targets, configuration);
  const auto rate = stats::Summarise(measured.Values(index, "throughput_images_per_s"), options.confidence);
  if (!price || !rate || !(rate->mean > 0)) return result;
  const auto of_a_million = [&](double images_per_s) { return *price / (3600 * images_per_s) * 1e6; };
  result.price_per_hour = *price;
  result.price_per_million_images = of_a_million(rate->mean);
  if (rate->high) result.price_interval = {.low = of_a_million(*rate->high), .high = {}};
  if (rate->low && *rate->low > 0) result.price_interval->high = of_a_million(*rate->low);
  return result;
}

results::StudyDesign MakeDesignResult(const Design& design) {
  results::StudyDesign result{.blocks = design.blocks,
                              .trials = std::ssize(design.trials),
                              .reference = design.reference,
                              .unnamed = design.unnamed};
  for (const Configuration& one : design.configurations) result.configurations.push_back(ToResult(one));
  for (const PlannedStep& one : design.waterfall)
    result.waterfall.push_back(
        {.name = one.name, .change = one.change, .label = design.configurations[one.configuration].label});
  std::vector<int> seen(design.configurations.size(), 0);
  for (const Combination& one : design.combinations) {
    if (!one.configuration) {
      result.dropped.push_back({.combination = one.factors, .why = one.dropped});
    } else if (seen[*one.configuration]++ > 0) {
      result.merged.push_back(
          {.combination = one.factors, .configuration = *one.configuration, .why = one.changes});
    }
  }
  return result;
}

StudyResult MakeResult(const ResultInputs& inputs) {
  const Analysis analysis = Analyse(inputs.study, inputs.design, inputs.journal.played, inputs.options);
  const Measured measured(inputs.design, inputs.journal.played);
  const std::string& objective = inputs.study.objective.metric;
  results::StudyDesign design = MakeDesignResult(inputs.design);
  StudyResult result{.study = ToSettings(inputs.study),
                     .provenance = inputs.journal.header.provenance,
                     .options = {.confidence = inputs.options.confidence,
                                 .margin = inputs.options.margin,
                                 .alpha = inputs.options.alpha,
                                 .power = inputs.options.power},
                     .trials = ToResult(analysis.tally),
                     .blocks = design.blocks,
                     .reference = design.reference,
                     .unnamed = design.unnamed};
  result.trials.planned = design.trials;
  result.trials.retried = analysis.retried;
  for (const Answer& one : analysis.answers.answers) result.answers.push_back(ToAnswer(one, objective));
  result.no_answer = analysis.answers.none;
  result.figures = DrawFigures(inputs.study, inputs.design, analysis, measured);
  result.latency_figures = DrawLatency(inputs.design, analysis, measured);
  result.memory_figures = DrawMemory(inputs.design, analysis);
  result.stability_figures = DrawStability(measured, objective);
  for (const MissingMetric& one : analysis.missing)
    result.missing_metrics.push_back(
        {.metric = one.metric, .wanted_by = one.wanted_by, .nearest = one.nearest.value_or("")});
  result.configurations = FindConfigurations(inputs, analysis, measured);
  result.comparisons = ConvertAll<StudyResult::Comparison>(analysis.comparisons, ToComparison);
  for (const Effect& one : analysis.effects) result.effects.push_back(ToEffect(one, inputs.design));
  for (const ArchitecturePair& one : analysis.architectures)
    result.architectures.push_back({.from = one.from.get<std::string>(),
                                    .to = one.to.get<std::string>(),
                                    .at = one.at,
                                    .pair = ToPair(one, inputs.design)});
  result.variance = ToResult(analysis.variance);
  if (analysis.waterfall) result.waterfall = ToResult(*analysis.waterfall);
  if (analysis.phases) result.phases = ToResult(*analysis.phases);
  for (const OutlierTrial& one : analysis.outliers) result.outliers.push_back(ToOutlier(one, inputs.design));
  result.outliers_left_out = analysis.outliers_left_out;
  result.drift = ToResult(analysis.drift);
  result.merged = std::move(design.merged);
  result.dropped = std::move(design.dropped);
  result.rows = FindRows(inputs);
  return result;
}

}  // namespace weir::study
