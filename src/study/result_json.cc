#include "study/result_json.h"

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

Json ToJson(const Effect& effect) {
  Json json{{"factor", effect.factor},
            {"from", LevelText(effect.factor, effect.from)},
            {"to", LevelText(effect.factor, effect.to)},
            {"metric", effect.metric},
            {"pairs", effect.pairs}};
  json.update(ToJson(effect.ratio));
  json["told"] = ToString(effect.told);
  return json;
}

Json ToJson(const StudyDrift& drift) {
  Json json{{"metric", drift.metric}, {"blocks", drift.blocks}, {"flagged", drift.flagged}};
  PutIfAny(json, "change", drift.change);
  PutIfAny(json, "low", drift.low);
  PutIfAny(json, "high", drift.high);
  if (drift.within_block) json["within_block"] = ToJson(*drift.within_block);
  if (drift.trend) json["trend"] = {{"rho", drift.trend->rho}, {"p_value", drift.trend->p_value}};
  json["restless_blocks"] = drift.restless;
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
    if (Json targets = TargetsJson(inputs.study.targets, inputs.design.configurations[i], result);
        !targets.empty())
      one["targets"] = std::move(targets);
    list.push_back(std::move(one));
  }
  return list;
}

Json AnswerJson(const Answer& answer, const std::string& metric) {
  Json json{{"metric", metric}, {"best", answer.best}, {"mean", answer.mean}, {"others", Json::array()}};
  for (const Comparison& other : answer.others) json["others"].push_back(ToJson(other));
  return json;
}

// An interval lies wholly on one side of a limit, or says nothing.
std::string_view Against(const stats::Summary& summary, double limit, bool at_most) {
  if (!summary.low || !summary.high) return "undecided";
  if (at_most ? *summary.high <= limit : *summary.low >= limit) return "met";
  if (at_most ? *summary.low > limit : *summary.high < limit) return "missed";
  return "undecided";
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
  json.update(ToJson(comparison.ratio));
  json["told"] = ToString(comparison.told);
  PutIfAny(json, "smallest_difference", comparison.smallest_difference);
  return json;
}

Json TargetsJson(const Targets& targets, const Configuration& configuration,
                 const ConfigurationResult& result) {
  Json json = Json::object();
  const Figures* const p99 = FindFigures(result, "response_ms.p99");
  const Figures* const rate = FindFigures(result, "throughput_images_per_s");
  if (targets.p99_ms)
    json["p99_ms"] = {{"at_most", *targets.p99_ms},
                      {"verdict", p99 ? Against(p99->summary, *targets.p99_ms, true) : "not measured"}};
  if (targets.images_per_s)
    json["images_per_s"] = {
        {"at_least", *targets.images_per_s},
        {"verdict", rate ? Against(rate->summary, *targets.images_per_s, false) : "not measured"}};
  const std::string architecture = configuration.factors.value("architecture", std::string("in-process"));
  const auto price = targets.price_per_hour.find(architecture);
  if (price != targets.price_per_hour.end() && rate && rate->summary.mean > 0)
    json["price_per_million_images"] = price->second / (3600 * rate->summary.mean) * 1e6;
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
  if (analysis.answer) json["answer"] = AnswerJson(*analysis.answer, inputs.study.objective.metric);
  json["figures"] = Json::array();
  for (const ChartData& chart : DrawFigures(inputs.study, inputs.design, analysis))
    json["figures"].push_back(ToJson(chart));
  if (!analysis.missing.empty()) json["missing_metrics"] = ToJson(analysis.missing);
  json["configurations"] = ConfigurationsJson(inputs, design, analysis);
  json["comparisons"] = Json::array();
  for (const Comparison& one : analysis.comparisons) json["comparisons"].push_back(ToJson(one));
  json["effects"] = Json::array();
  for (const Effect& one : analysis.effects) json["effects"].push_back(ToJson(one));
  json["drift"] = ToJson(analysis.drift);
  json["merged"] = design["merged"];
  json["dropped"] = design["dropped"];
  json["rows"] = RowsJson(inputs);
  return json;
}

}  // namespace weir::study
