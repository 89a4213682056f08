#include "results/study_result.h"

#include <algorithm>

#include "base/fields.h"
#include "results/schema_version.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, StudyDesign::Configuration>& one) {
  fields("label", one.label);
  fields("factors", one.factors);
  fields("levels", one.levels);
  fields.Unless("waterfall_only", one.waterfall_only);
}

template <typename F>
void Describe(F& fields, Described<F, StudyDesign::Step>& step) {
  fields("name", step.name);
  fields("change", step.change);
  fields("label", step.label);
}

template <typename F>
void Describe(F& fields, Described<F, StudyDesign::Merged>& merged) {
  fields("combination", merged.combination);
  fields("configuration", merged.configuration);
  fields("why", merged.why);
}

template <typename F>
void Describe(F& fields, Described<F, StudyDesign::Dropped>& dropped) {
  fields("combination", dropped.combination);
  fields("why", dropped.why);
}

template <typename F>
void Describe(F& fields, Described<F, StudyDesign>& design) {
  fields("blocks", design.blocks);
  fields("trials", design.trials);
  fields("reference", design.reference);
  fields.Unless("unnamed", design.unnamed);
  fields("configurations", design.configurations);
  fields.Unless("waterfall", design.waterfall);
  fields("merged", design.merged);
  fields("dropped", design.dropped);
  fields("needed_s", design.needed_s);
}

template <typename F>
void Describe(F& fields, Described<F, TrialCounts>& trials) {
  fields("valid", trials.valid);
  fields("suspect", trials.suspect);
  fields("invalid", trials.invalid);
  fields("failed", trials.failed);
  fields("skipped", trials.skipped);
  fields("planned", trials.planned);
  fields("retried", trials.retried);
}

template <typename F>
void Describe(F& fields, Described<F, Figures>& figures) {
  fields("n", figures.n);
  fields("mean", figures.mean);
  fields("standard_deviation", figures.standard_deviation);
  fields("standard_error", figures.standard_error);
  fields("low", figures.low);
  fields("high", figures.high);
  fields("median", figures.median);
  fields("median_low", figures.median_low);
  fields("median_high", figures.median_high);
  fields("median_coverage", figures.median_coverage);
  fields("min", figures.min);
  fields("max", figures.max);
}

template <typename F>
void Describe(F& fields, Described<F, RatioFigures>& ratio) {
  fields("n", ratio.n);
  fields("ratio", ratio.ratio);
  fields("low", ratio.low);
  fields("high", ratio.high);
  fields("log_deviation", ratio.log_deviation);
}

template <typename F>
void Describe(F& fields, Described<F, TestedRatio>& tested) {
  Describe(fields, tested.ratio);  // at the same level, as below
  fields("p", tested.p);
  fields("adjusted_p", tested.adjusted_p);
  fields("told", tested.told);
  fields("limit", tested.limit);
  fields("smallest_difference", tested.smallest_difference);
}

template <typename F>
void Describe(F& fields, Described<F, ChartData::Trial>& trial) {
  fields("value", trial.value);
  fields("suspect", trial.suspect);
}

template <typename F>
void Describe(F& fields, Described<F, ChartData::Point>& point) {
  fields("x", point.x);
  fields.Unless("name", point.name);
  fields("mean", point.mean);
  fields("low", point.low);
  fields("high", point.high);
  fields("n", point.n);
  fields("suspect", point.suspect);
  fields.Unless("trials", point.trials);
}

template <typename F>
void Describe(F& fields, Described<F, ChartData::Series>& series) {
  fields("name", series.name);
  fields("points", series.points);
}

template <typename F>
void Describe(F& fields, Described<F, ChartData>& chart) {
  fields("title", chart.title);
  fields("metric", chart.metric);
  std::string kind = chart.x.empty() ? "bars" : "lines";  // for other programs; `x` tells it as well
  fields("kind", kind);
  fields.Unless("x", chart.x);
  fields("series", chart.series);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Options>& options) {
  fields("confidence", options.confidence);
  fields("margin", options.margin);
  fields("alpha", options.alpha);
  fields("power", options.power);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Comparison>& one) {
  fields("configuration", one.configuration);
  fields("against", one.against);
  fields("metric", one.metric);
  Describe(fields, one.tested);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Pair>& one) {
  fields("configuration", one.configuration);
  fields("label", one.label);
  fields("against", one.against);
  Describe(fields, one.tested);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Answer>& answer) {
  fields("metric", answer.metric);
  fields("ranked_by", answer.ranked_by);
  fields("best", answer.best);
  fields("mean", answer.mean);
  fields("others", answer.others);
  fields.Unless("among", answer.among);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Missing>& missing) {
  fields("metric", missing.metric);
  fields("wanted_by", missing.wanted_by);
  fields.Unless("nearest", missing.nearest);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Bottleneck>& bottleneck) {
  fields("stage", bottleneck.stage);
  fields("times", bottleneck.times);
  fields("of", bottleneck.of);
  fields("bound_images_per_s", bottleneck.bound);
  fields.Unless("next", bottleneck.next);
  fields("next_bound_images_per_s", bottleneck.next_bound);
  fields("gain", bottleneck.gain);
  fields.Unless("contradiction", bottleneck.contradiction);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::AtMost>& target) {
  fields("at_most", target.at_most);
  fields("verdict", target.verdict);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::AtLeast>& target) {
  fields("at_least", target.at_least);
  fields("verdict", target.verdict);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Interval>& interval) {
  fields("low", interval.low);
  fields("high", interval.high);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Targets>& targets) {
  fields("p99_ms", targets.p99_ms);
  fields("images_per_s", targets.images_per_s);
  fields("price_per_hour", targets.price_per_hour);
  fields("price_per_million_images", targets.price_per_million_images);
  fields("price_interval", targets.price_interval);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Configuration>& one) {
  fields("index", one.index);
  Describe(fields, one.design);
  fields("trials", one.trials);
  fields.Unless("skipped_why", one.skipped_why);
  fields("metrics", one.metrics);
  fields("words", one.words);
  fields("bottleneck", one.bottleneck);
  fields("emulated", one.emulated);
  fields("most_trials_valid", one.most_trials_valid);
  fields.Unless("targets", one.targets);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::LevelEffect>& one) {
  fields("factor", one.factor);
  fields("level", one.level);
  fields("pairs", one.pairs);
  Describe(fields, one.tested);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Effect>& effect) {
  fields("factor", effect.factor);
  fields("from", effect.from);
  fields("to", effect.to);
  fields("metric", effect.metric);
  fields("pairs", effect.pairs);
  fields("acts", effect.acts);
  fields("pairs_higher", effect.pairs_higher);
  fields("pairs_lower", effect.pairs_lower);
  Describe(fields, effect.tested);
  fields("least", effect.least);
  fields("most", effect.most);
  fields("by_level", effect.by_level);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::ArchitecturePair>& one) {
  fields("from", one.from);
  fields("to", one.to);
  fields("at", one.at);
  Describe(fields, one.pair);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::VarianceTerm>& term) {
  fields("factors", term.factors);
  fields("degrees", term.degrees);
  fields("f", term.f);
  fields("p", term.p);
  fields("adjusted_p", term.adjusted_p);
  fields("share", term.share);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::AliasedTerm>& term) {
  fields("factors", term.factors);
  fields("degrees", term.degrees);
  fields("own_degrees", term.own_degrees);
  fields("with", term.with);
  fields.Unless("not_applicable", term.not_applicable);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Variance>& variance) {
  fields("metric", variance.metric);
  fields("trials", variance.trials);
  fields.Unless("left_out", variance.left_out);
  fields("residual_degrees", variance.residual_degrees);
  fields("residual_deviation", variance.residual_deviation);
  fields("normality_p", variance.normality_p);
  fields("durbin_watson", variance.durbin_watson);
  fields("terms", variance.terms);
  fields.Unless("aliased", variance.aliased);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Milliseconds>& time) {
  fields("mean_ms", time.mean_ms);
  fields("low_ms", time.low_ms);
  fields("high_ms", time.high_ms);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::WaterfallStep>& one) {
  fields("name", one.name);
  fields("change", one.change);
  fields("configuration", one.configuration);
  fields("blocks", one.blocks);
  fields("total_ms", one.total_ms);
  fields("p", one.p);
  fields("adjusted_p", one.adjusted_p);
  Describe(fields, one.step);
  fields("whole", one.whole);
  fields.Unless("by_events", one.by_events);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::PhaseKept>& one) {
  fields("phase", one.phase);
  fields("metric", one.metric);
  fields("limits", one.limits);
  fields("configuration", one.configuration);
  fields("against", one.against);
  fields("alone", one.alone);
  fields("together", one.together);
  Describe(fields, one.tested);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Phases>& phases) {
  fields("kept", phases.kept);
  fields.Unless("recommended", phases.recommended);
  fields("least_kept", phases.least_kept);
  fields.Unless("why_not", phases.why_not);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Waterfall>& waterfall) {
  fields.Unless("left_out", waterfall.left_out);
  fields("steps", waterfall.steps);
  fields("missing", waterfall.missing);
  fields("added", waterfall.added);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Outlier>& outlier) {
  fields("configuration", outlier.configuration);
  fields("label", outlier.label);
  fields("block", outlier.block);
  fields("position", outlier.position);
  fields("value", outlier.value);
  fields("ratio", outlier.ratio);
  fields("t", outlier.t);
  fields("p", outlier.p);
  fields("evidence", outlier.evidence);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::RestlessBlock>& block) {
  fields("block", block.block);
  fields("ratio", block.ratio);
  fields("evidence", block.evidence);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Trend>& trend) {
  fields("rho", trend.rho);
  fields("p_value", trend.p_value);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Drift>& drift) {
  fields("metric", drift.metric);
  fields("blocks", drift.blocks);
  fields("flagged", drift.flagged);
  fields("shown", drift.shown);
  fields("change", drift.change);
  fields("low", drift.low);
  fields("high", drift.high);
  fields("limit", drift.limit);
  fields("within_block", drift.within_block);
  fields("trend", drift.trend);
  fields("restless_blocks", drift.restless_blocks);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Row>& row) {
  fields("id", row.id);
  fields("attempt", row.attempt);
  fields("counts", row.counts);
  fields("configuration", row.configuration);
  fields("label", row.label);
  fields("block", row.block);
  fields("position", row.position);
  fields("role", row.role);
  fields("seed", row.seed);
  fields("took_s", row.took_s);
  fields("levels", row.levels);
  fields("verdict", row.verdict);
  fields("metrics", row.metrics);
  fields("command", row.command);
  fields.Unless("server_command", row.server_command);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::ComparedConfiguration>& one) {
  fields("label", one.label);
  fields("before", one.before);
  fields("now", one.now);
  fields.Beside("ratio", one.tested);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult::Compared>& compared) {
  fields("metric", compared.metric);
  fields("differences", compared.differences);
  fields("configurations", compared.configurations);
  fields("only_before", compared.only_before);
  fields("only_now", compared.only_now);
}

template <typename F>
void Describe(F& fields, Described<F, StudyResult>& result) {
  fields("study", result.study);
  fields("provenance", result.provenance);
  fields("options", result.options);
  fields("trials", result.trials);
  fields("blocks", result.blocks);
  fields("reference", result.reference);
  fields.Unless("unnamed", result.unnamed);
  fields("answers", result.answers);
  if constexpr (!F::kReads) {
    if (!result.answers.empty()) fields("answer", result.answers[0]);  // for programs that want one
  }
  fields.Unless("no_answer", result.no_answer);
  fields("figures", result.figures);
  fields("latency_figures", result.latency_figures);
  fields("memory_figures", result.memory_figures);
  fields("stability_figures", result.stability_figures);
  fields.Unless("missing_metrics", result.missing_metrics);
  fields("configurations", result.configurations);
  fields("comparisons", result.comparisons);
  fields("effects", result.effects);
  fields("architectures", result.architectures);
  fields("variance", result.variance);
  fields("waterfall", result.waterfall);
  fields("phases", result.phases);
  fields("outliers", result.outliers);
  fields.Unless("outliers_left_out", result.outliers_left_out);
  fields("drift", result.drift);
  fields("merged", result.merged);
  fields("dropped", result.dropped);
  fields("rows", result.rows);
  fields("compared", result.compared);
}

namespace {

struct Objective {
  std::string metric, better;
};

template <typename F>
void Describe(F& fields, Described<F, Objective>& objective) {
  fields("metric", objective.metric);
  fields("better", objective.better);
}

// The keys of a study file that reports use.
struct UsedSettings {
  std::string study, question, server_host;
  uint64_t seed = 0;
  Objective objective;
};

template <typename F>
void Describe(F& fields, Described<F, UsedSettings>& used) {
  fields("study", used.study);
  fields.IfAny("question", used.question);
  fields.IfAny("server_host", used.server_host);
  fields("seed", used.seed);
  fields("objective", used.objective);
}

std::string TextAt(const Json& object, const char* key, const char* otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

}  // namespace

Json StudyDesign::ToJson() const { return FieldsToJson(*this); }

Result<StudyDesign> StudyDesign::FromJson(const Json& json) { return FieldsFromJson<StudyDesign>(json); }

Json StudySettings::WithoutLists() const {
  Json settings = all;
  for (const char* key : {"question", "figures", "also", "except"}) settings.erase(key);
  return settings;
}

Result<StudySettings> StudySettings::FromValue(const Json& json) {
  auto used = TRY(FieldsFromJson<UsedSettings>(json));
  return StudySettings{.all = json,
                       .name = std::move(used.study),
                       .question = std::move(used.question),
                       .metric = std::move(used.objective.metric),
                       .higher_is_better = used.objective.better == "higher",
                       .seed = used.seed,
                       .server_host = std::move(used.server_host)};
}

Json FiguresByMetric::ToValue() const {
  Json json = Json::object();
  for (const auto& [metric, figures] : all) json[metric] = FieldsToJson(figures);
  return json;
}

Result<FiguresByMetric> FiguresByMetric::FromValue(const Json& json) {
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, "is not an object");
  FiguresByMetric figures;
  for (const auto& [metric, one] : json.items())
    figures.all.emplace_back(metric, TRY_CONTEXT(FieldsFromJson<Figures>(one), metric));
  return figures;
}

const Figures* StudyResult::FindFigures(size_t index, std::string_view metric) const {
  const auto& all = configurations[index].metrics.all;
  const auto found = std::ranges::find(all, metric, &std::pair<std::string, Figures>::first);
  return found == all.end() ? nullptr : &found->second;
}

const StudyResult::Comparison* StudyResult::FindComparison(size_t index, std::string_view metric) const {
  const auto found = std::ranges::find_if(
      comparisons, [&](const Comparison& one) { return one.configuration == index && one.metric == metric; });
  return found == comparisons.end() ? nullptr : &*found;
}

std::optional<StudyResult::Word> StudyResult::CommonestWord(size_t index, const std::string& metric) const {
  const auto& words = configurations[index].words;
  const auto found = words.find(metric);
  if (found == words.end()) return std::nullopt;
  Word commonest;
  for (const auto& [word, times] : found->second) {
    commonest.of += times;
    if (times <= commonest.times) continue;
    commonest.word = word;
    commonest.times = times;
  }
  return commonest;
}

std::string StudyResult::command() const { return TextAt(provenance, "command", ""); }

std::string StudyResult::build_id() const { return TextAt(provenance, "build_id", "unknown"); }

Json StudyResult::ToJson() const {
  Json json{{kSchemaVersionKey, kSchemaVersion}};
  FieldWriter writer(json);
  Describe(writer, *this);
  return json;
}

Result<StudyResult> StudyResult::FromJson(const Json& json) {
  TRY_STATUS(CheckSchemaVersion(json, "a study's result"));
  return FieldsFromJson<StudyResult>(json);
}

}  // namespace weir::results
