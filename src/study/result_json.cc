#include "study/result_json.h"

#include <algorithm>
#include <set>
#include <utility>

#include "results/schema_version.h"
#include "study/factor.h"
#include "study/figures.h"

namespace weir::study {
namespace {

Json ToJson(const Tally& tally) {
  return {{"valid", tally.valid},
          {"suspect", tally.suspect},
          {"invalid", tally.invalid},
          {"failed", tally.failed},
          {"skipped", tally.skipped}};
}

Json ToJson(const stats::Ratio& ratio) {
  Json json{{"n", ratio.n}, {"ratio", ratio.ratio}};
  PutIfAny(json, "low", ratio.low);
  PutIfAny(json, "high", ratio.high);
  PutIfAny(json, "log_deviation", ratio.log_deviation);
  return json;
}

Json ToJson(const Tested& tested) {
  Json json = ToJson(tested.ratio);
  json["p"] = tested.p;
  json["adjusted_p"] = tested.adjusted_p;
  json["told"] = ToString(tested.told);
  PutIfAny(json, "limit", tested.limit);
  PutIfAny(json, "smallest_difference", tested.smallest_difference);
  return json;
}

Json PairJson(const Comparison& one, const Design& design) {
  Json json{{"configuration", one.configuration},
            {"label", design.configurations[one.configuration].label},
            {"against", design.configurations[one.against].label}};
  json.update(ToJson(static_cast<const Tested&>(one)));
  return json;
}

Json ToJson(const Effect& effect, const Design& design) {
  Json json{{"factor", effect.factor},
            {"from", LevelText(effect.factor, effect.from)},
            {"to", LevelText(effect.factor, effect.to)},
            {"metric", effect.metric},
            {"pairs", effect.pairs},
            {"acts", ToString(effect.acts)},
            {"pairs_higher", effect.higher},
            {"pairs_lower", effect.lower}};
  json.update(ToJson(static_cast<const Tested&>(effect)));
  const auto by_ratio = [](const Comparison& one) { return one.ratio.ratio; };
  if (effect.each.size() > 1) {
    const auto [least, most] = std::ranges::minmax_element(effect.each, {}, by_ratio);
    json["least"] = PairJson(*least, design);
    json["most"] = PairJson(*most, design);
  }
  json["by_level"] = Json::array();
  for (const LevelEffect& one : effect.by_level) {
    Json level{{"factor", one.other},
               {"level", one.level.is_null() ? "not applicable" : LevelText(one.other, one.level)},
               {"pairs", one.pairs}};
    level.update(ToJson(static_cast<const Tested&>(one)));
    json["by_level"].push_back(std::move(level));
  }
  return json;
}

Json ArchitecturesJson(const std::vector<ArchitecturePair>& pairs, const Design& design) {
  Json list = Json::array();
  for (const ArchitecturePair& one : pairs) {
    Json json{{"from", one.from}, {"to", one.to}, {"at", one.at}};
    json.update(PairJson(one, design));
    list.push_back(std::move(json));
  }
  return list;
}

Json ToJson(const VarianceTable& table) {
  Json json{{"metric", table.metric}, {"trials", table.trials}};
  if (!table.left_out.empty()) {
    json["left_out"] = table.left_out;
    return json;
  }
  json["residual_degrees"] = table.residual_degrees;
  PutIfAny(json, "residual_deviation", table.residual_deviation);
  PutIfAny(json, "normality_p", table.normality_p);
  PutIfAny(json, "durbin_watson", table.durbin_watson);
  json["terms"] = Json::array();
  for (const VarianceTerm& term : table.terms)
    json["terms"].push_back({{"factors", term.factors},
                             {"degrees", term.degrees},
                             {"f", term.f},
                             {"p", term.p},
                             {"adjusted_p", term.adjusted_p},
                             {"share", term.share}});
  return json;
}

Json ToJson(const std::vector<OutlierTrial>& outliers, const Design& design) {
  Json list = Json::array();
  for (const OutlierTrial& one : outliers)
    list.push_back({{"configuration", one.configuration},
                    {"label", design.configurations[one.configuration].label},
                    {"block", one.block},
                    {"position", one.position},
                    {"value", one.value},
                    {"ratio", one.ratio},
                    {"t", one.t},
                    {"p", one.p},
                    {"evidence", one.evidence}});
  return list;
}

Json ToJson(const Waterfall& waterfall) {
  if (!waterfall.left_out.empty()) return {{"left_out", waterfall.left_out}};
  const auto put = [](const stats::Summary& summary, Json& json) {
    json["mean_ms"] = summary.mean;
    PutIfAny(json, "low_ms", summary.low);
    PutIfAny(json, "high_ms", summary.high);
  };
  Json json{{"steps", Json::array()}};
  for (const WaterfallStep& one : waterfall.steps) {
    Json step{{"name", one.name},
              {"change", one.change},
              {"configuration", one.configuration},
              {"blocks", one.blocks},
              {"total_ms", one.total},
              {"p", one.p},
              {"adjusted_p", one.adjusted_p}};
    put(*one.step, step);
    json["steps"].push_back(std::move(step));
  }
  json["missing"] = waterfall.missing;
  json["added"] = Json::object();
  put(*waterfall.added, json["added"]);
  return json;
}

Json ToJson(const NextBottleneck& one) {
  Json json{{"stage", one.stage}, {"times", one.times}, {"of", one.of}};
  PutIfAny(json, "bound_images_per_s", one.bound);
  if (!one.next.empty()) json["next"] = one.next;
  PutIfAny(json, "next_bound_images_per_s", one.next_bound);
  if (one.gain) json["gain"] = ToJson(*one.gain);
  return json;
}

Json ToJson(const StudyDrift& drift) {
  Json json{
      {"metric", drift.metric}, {"blocks", drift.blocks}, {"flagged", drift.flagged}, {"shown", drift.shown}};
  PutIfAny(json, "change", drift.change);
  PutIfAny(json, "low", drift.low);
  PutIfAny(json, "high", drift.high);
  PutIfAny(json, "limit", drift.limit);
  if (drift.within_block) json["within_block"] = ToJson(*drift.within_block);
  if (drift.trend) json["trend"] = {{"rho", drift.trend->rho}, {"p_value", drift.trend->p_value}};
  json["restless_blocks"] = Json::array();
  for (const RestlessBlock& one : drift.restless)
    json["restless_blocks"].push_back(
        {{"block", one.block}, {"ratio", one.ratio}, {"evidence", one.evidence}});
  return json;
}

Json ToJson(const std::vector<MissingMetric>& missing) {
  Json list = Json::array();
  for (const MissingMetric& one : missing) {
    Json json{{"metric", one.metric}, {"wanted_by", one.wanted_by}};
    PutIfAny(json, "nearest", one.nearest);
    list.push_back(std::move(json));
  }
  return list;
}

Json RowJson(const PlayedTrials& played, const Design& design, bool last) {
  const Trial& trial = played.trial;
  const bool known = trial.configuration < design.configurations.size();
  Json levels = Json::object();
  for (const auto& [factor, level] : played.record.factors.items()) levels[factor] = LevelText(factor, level);
  Json metrics = Json::object();
  const FlatMetrics flat = Flatten(played.record.metrics);
  for (const auto& [name, value] : flat.numbers) metrics[name] = value;
  for (const auto& [name, word] : flat.words) metrics[name] = word;
  return {{"id", trial.id},
          {"attempt", played.attempt},
          {"counts", last && Counts(played)},
          {"configuration", trial.configuration},
          {"label", known ? design.configurations[trial.configuration].label : ""},
          {"block", trial.block},
          {"position", trial.position},
          {"role", ToString(trial.role)},
          {"seed", trial.seed},
          {"took_s", played.took_s},
          {"levels", std::move(levels)},
          {"verdict", played.record.verdict.ToJson()},
          {"metrics", std::move(metrics)},
          {"command", played.record.command}};
}

Json RowsJson(const ResultInputs& inputs) {
  const std::vector<const PlayedTrials*> tries = LastTries(inputs.journal.played);
  const std::set<const PlayedTrials*> last(tries.begin(), tries.end());
  Json rows = Json::array();
  for (const PlayedTrials& played : inputs.journal.played)
    rows.push_back(RowJson(played, inputs.design, last.contains(&played)));
  return rows;
}

Json ConfigurationsJson(const ResultInputs& inputs, const Json& design, const Analysis& analysis) {
  const Measured measured(inputs.design, inputs.journal.played);
  Json list = Json::array();
  for (size_t i = 0; i < analysis.configurations.size(); ++i) {
    const ConfigurationResult& result = analysis.configurations[i];
    Json one{{"index", i}};
    one.update(design["configurations"][i]);
    one["trials"] = ToJson(result.tally);
    if (!result.skipped_why.empty()) one["skipped_why"] = result.skipped_why;
    one["metrics"] = Json::object();
    for (const Figures& figures : result.metrics) one["metrics"][figures.metric] = ToJson(figures);
    one["words"] = result.words.empty() ? Json::object() : Json(result.words);
    if (result.bottleneck) one["bottleneck"] = ToJson(*result.bottleneck);
    one["emulated"] = IsEmulated(inputs.design.configurations[i]);
    one["most_trials_valid"] = result.tally.mostly_valid();
    if (Json targets =
            TargetsJson(inputs.study.targets, inputs.design.configurations[i], i, measured, inputs.options);
        !targets.empty())
      one["targets"] = std::move(targets);
    list.push_back(std::move(one));
  }
  return list;
}

Json AnswerJson(const Answer& answer, const std::string& metric) {
  Json json{{"metric", metric},
            {"ranked_by", answer.ranked_by},
            {"best", answer.best},
            {"mean", answer.mean},
            {"others", Json::array()}};
  if (!answer.among.empty()) json["among"] = answer.among;
  for (const Comparison& other : answer.others) json["others"].push_back(ToJson(other));
  return json;
}

}  // namespace

Json ToJson(const Figures& figures) {
  const stats::Summary& s = figures.summary;
  Json json{{"n", s.n}, {"mean", s.mean}};
  PutIfAny(json, "standard_deviation", s.standard_deviation);
  PutIfAny(json, "standard_error", s.standard_error);
  PutIfAny(json, "low", s.low);
  PutIfAny(json, "high", s.high);
  json["median"] = s.median;
  PutIfAny(json, "median_low", figures.median.low);
  PutIfAny(json, "median_high", figures.median.high);
  PutIfAny(json, "median_coverage", figures.median.coverage);
  json["min"] = s.min;
  json["max"] = s.max;
  return json;
}

Json ToJson(const Comparison& comparison) {
  Json json{{"configuration", comparison.configuration},
            {"against", comparison.against},
            {"metric", comparison.metric}};
  json.update(ToJson(static_cast<const Tested&>(comparison)));
  return json;
}

Json TargetsJson(const Targets& targets, const Configuration& configuration, size_t index,
                 const Measured& measured, const AnalysisOptions& options) {
  Json json = Json::object();
  const TargetStandings standings = JudgeTargets(measured, index, targets, options);
  if (standings.p99) json["p99_ms"] = {{"at_most", *targets.p99_ms}, {"verdict", ToString(*standings.p99)}};
  if (standings.rate)
    json["images_per_s"] = {{"at_least", *targets.images_per_s}, {"verdict", ToString(*standings.rate)}};
  const auto price = PricePerHour(targets, configuration);
  const auto rate = stats::Summarise(measured.Values(index, "throughput_images_per_s"), options.confidence);
  if (!price || !rate || !(rate->mean > 0)) return json;
  const auto of_a_million = [&](double images_per_s) { return *price / (3600 * images_per_s) * 1e6; };
  json["price_per_hour"] = *price;
  json["price_per_million_images"] = of_a_million(rate->mean);
  if (rate->low && *rate->low > 0)
    json["price_interval"] = {{"low", of_a_million(*rate->high)}, {"high", of_a_million(*rate->low)}};
  return json;
}

Json ResultJson(const ResultInputs& inputs) {
  const Analysis analysis = Analyse(inputs.study, inputs.design, inputs.journal.played, inputs.options);
  const Json design = ToJson(inputs.design);
  Json json{{results::kSchemaVersionKey, results::kSchemaVersion},
            {"study", inputs.study.ToJson()},
            {"provenance", inputs.journal.header.provenance}};
  json["options"] = {{"confidence", inputs.options.confidence},
                     {"margin", inputs.options.margin},
                     {"alpha", inputs.options.alpha},
                     {"power", inputs.options.power}};
  json["trials"] = ToJson(analysis.tally);
  json["trials"]["planned"] = inputs.design.trials.size();
  json["trials"]["retried"] = analysis.retried;
  json["blocks"] = inputs.design.blocks;
  json["reference"] = inputs.design.reference;
  if (!inputs.design.unnamed.empty()) json["unnamed"] = inputs.design.unnamed;
  const std::string& objective = inputs.study.objective.metric;
  json["answers"] = Json::array();
  for (const Answer& one : analysis.answers.answers) json["answers"].push_back(AnswerJson(one, objective));
  if (analysis.answers.none.empty())
    json["answer"] = json["answers"][0];
  else
    json["no_answer"] = analysis.answers.none;
  json["figures"] = Json::array();
  const Measured measured(inputs.design, inputs.journal.played);
  for (const ChartData& chart : DrawFigures(inputs.study, inputs.design, analysis, measured))
    json["figures"].push_back(ToJson(chart));
  const auto add_charts = [&json](const char* key, const std::vector<ChartData>& charts) {
    json[key] = Json::array();
    for (const ChartData& chart : charts) json[key].push_back(ToJson(chart));
  };
  add_charts("latency_figures", DrawLatency(inputs.design, analysis));
  add_charts("memory_figures", DrawMemory(inputs.design, analysis));
  add_charts("stability_figures", DrawStability(measured, objective));
  if (!analysis.missing.empty()) json["missing_metrics"] = ToJson(analysis.missing);
  json["configurations"] = ConfigurationsJson(inputs, design, analysis);
  json["comparisons"] = Json::array();
  for (const Comparison& one : analysis.comparisons) json["comparisons"].push_back(ToJson(one));
  json["effects"] = Json::array();
  for (const Effect& one : analysis.effects) json["effects"].push_back(ToJson(one, inputs.design));
  json["architectures"] = ArchitecturesJson(analysis.architectures, inputs.design);
  json["variance"] = ToJson(analysis.variance);
  if (analysis.waterfall) json["waterfall"] = ToJson(*analysis.waterfall);
  json["outliers"] = ToJson(analysis.outliers, inputs.design);
  if (!analysis.outliers_left_out.empty()) json["outliers_left_out"] = analysis.outliers_left_out;
  json["drift"] = ToJson(analysis.drift);
  json["merged"] = design["merged"];
  json["dropped"] = design["dropped"];
  json["rows"] = RowsJson(inputs);
  return json;
}

}  // namespace weir::study
