#include "results/fit_result.h"

#include "base/fields.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, FitScore>& score) {
  fields("median_percent", score.median_percent);
  fields("p90_percent", score.p90_percent);
  fields("log_mean_percent", score.log_mean_percent);
  fields("mean_percent", score.mean_percent);
  fields("rows", score.rows);
}

template <typename F>
void Describe(F& fields, Described<F, FitResult::Candidate>& candidate) {
  Describe(fields, candidate.score);  // at the same level, as below
  fields("candidate", candidate.name);
  fields("weight", candidate.weight);
}

template <typename F>
void Describe(F& fields, Described<F, FitResult::Group>& group) {
  Describe(fields, group.score);
  fields("group", group.name);
}

template <typename F>
void Describe(F& fields, Described<F, FitResult::ProfilePoint>& point) {
  fields("measured_ms", point.measured_ms);
  fields("predicted_over_measured", point.predicted_over_measured);
  fields("low", point.low);
  fields("high", point.high);
  fields("rows", point.rows);
}

template <typename F>
void Describe(F& fields, Described<F, FitResult::Case>& one) {
  fields("row", one.row);
  fields("hardware", one.hardware);
  fields("network", one.network);
  fields("devices", one.devices);
  fields("measured_ms", one.measured_ms);
  fields("predicted_ms", one.predicted_ms);
}

template <typename F>
void Describe(F& fields, Described<F, FitResult::Split>& split) {
  Describe(fields, split.score);
  fields("split", split.name);
  fields("interval_coverage_percent", split.interval_coverage_percent);
  fields("interval_half_width_percent", split.interval_half_width_percent);
  fields("interval_score_of_constant", split.interval_score_of_constant);
  fields("candidates", split.candidates);
  fields("by_hardware", split.by_hardware);
  fields("by_network", split.by_network);
  fields("by_devices", split.by_devices);
  fields("profile", split.profile);
  fields("worst", split.worst);
}

template <typename F>
void Describe(F& fields, Described<F, FitResult::LearningPoint>& point) {
  Describe(fields, point.score);
  fields("fitted", point.fitted);
  fields("answered_percent", point.answered_percent);
  fields("interval_coverage_percent", point.interval_coverage_percent);
}

template <typename F>
void Describe(F& fields, Described<F, FitResult::Finding>& finding) {
  fields("fault", finding.fault);
  fields("what", finding.what);
  fields("rows", finding.rows);
}

template <typename F>
void Describe(F& fields, Described<F, FitResult>& result) {
  fields("name", result.name);
  fields("target", result.target);
  fields("rows", result.rows);
  fields("skipped", result.skipped);
  fields("unusable", result.unusable);
  fields("left_out", result.left_out);
  fields("usable", result.usable);
  fields("fitted", result.fitted);
  fields("splits", result.splits);
  fields.Unless("learning_curve", result.learning_curve);
  fields("findings", result.findings);
  fields("models", result.models);
  fields("predictor", result.predictor);
  fields("seed", result.seed);
  fields("estimator", result.estimator);
  fields("wall_s", result.wall_s);
  fields("command", result.command);
}

template <typename F>
void Describe(F& fields, Described<F, FitsResult>& result) {
  fields.Beside("name", result.only);
  fields("fits", result.fits);
  fields("checks", result.checks);
  fields("wall_s", result.wall_s);
  fields.IfAny("provenance", result.provenance);
  fields("command", result.command);
}

Json FitResult::ToJson() const { return FieldsToJson(*this); }

Result<FitResult> FitResult::FromJson(const Json& json) { return FieldsFromJson<FitResult>(json); }

Json FitsResult::ToJson() const { return FieldsToJson(*this); }

Result<FitsResult> FitsResult::FromJson(const Json& json) { return FieldsFromJson<FitsResult>(json); }

}  // namespace weir::results
