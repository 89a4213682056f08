#include "results/advice_result.h"

#include "base/fields.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, AdviceResult::Expected>& expected) {
  fields("n", expected.n);
  fields("value", expected.value);
  fields("low", expected.low);
  fields("high", expected.high);
}

template <typename F>
void Describe(F& fields, Described<F, AdviceResult::AllExpected>& all) {
  fields("throughput_images_per_s", all.throughput_images_per_s);
  fields("p99_ms", all.p99_ms);
  fields("memory_bytes", all.memory_bytes);
}

template <typename F>
void Describe(F& fields, Described<F, AdviceResult::Cost>& cost) {
  fields("instances", cost.instances);
  fields("cost_per_hour", cost.per_hour);
  fields("cost_per_million_images", cost.per_million_images);
}

template <typename F>
void Describe(F& fields, Described<F, AdviceResult::Candidate>& candidate) {
  fields("label", candidate.label);
  fields("factors", candidate.factors);
  fields("standing", candidate.standing);
  fields.Unless("why", candidate.why);
  fields("expected", candidate.expected);
  Describe(fields, candidate.cost);  // at the same level, as below
}

template <typename F>
void Describe(F& fields, Described<F, AdviceResult::BestExpected>& expected) {
  Describe(fields, expected.throughput);
  fields("metric", expected.metric);
  fields("all", expected.all);
}

template <typename F>
void Describe(F& fields, Described<F, AdviceResult::Best>& best) {
  fields("configuration", best.configuration);
  fields("label", best.label);
  fields("expected", best.expected);
  Describe(fields, best.cost);
  fields.Unless("bottleneck", best.bottleneck);
}

template <typename F>
void Describe(F& fields, Described<F, AdviceResult::Comparison>& comparison) {
  fields("runner_up", comparison.runner_up);
  fields("significant", comparison.significant);
  fields("adjusted_p", comparison.adjusted_p);
  fields("advantage_low", comparison.advantage_low);
  fields("advantage_high", comparison.advantage_high);
}

template <typename F>
void Describe(F& fields, Described<F, AdviceResult::Search>& search) {
  fields("trials", search.trials);
  fields("exploration_trials", search.exploration_trials);
  fields("confirmation_trials", search.confirmation_trials);
  fields("full_factorial_trials", search.full_factorial_trials);
  fields("ending", search.ending);
}

template <typename F>
void Describe(F& fields, Described<F, AdviceResult::Hardware>& hardware) {
  fields("name", hardware.name);
  fields("engine", hardware.engine);
  fields("fast_engine", hardware.fast_engine);
  fields("slow_engine", hardware.slow_engine);
  fields.Unless("outside", hardware.outside);
  fields("label", hardware.label);
  fields("standing", hardware.standing);
  fields("throughput_images_per_s", hardware.throughput_images_per_s);
  fields("accelerator_images_per_s", hardware.accelerator_images_per_s);
  fields("fed_share", hardware.fed_share);
  fields("feeding", hardware.feeding);
  fields.Unless("bottleneck", hardware.bottleneck);
  fields("price_per_hour", hardware.price_per_hour);
  fields("cost_per_million_images", hardware.cost_per_million_images);
}

template <typename F>
void Describe(F& fields, Described<F, AdviceResult>& advice) {
  fields("objective", advice.objective);
  fields("targets", advice.targets);
  fields("rate_images_per_s", advice.rate_images_per_s);
  fields.Beside("configuration", advice.best);
  fields.Unless("no_answer", advice.no_answer);
  fields.Beside("runner_up", advice.comparison);
  fields("notes", advice.notes);
  fields("measure_next", advice.measure_next);
  fields("candidates", advice.candidates);
  fields.Unless("hardware", advice.hardware);
  fields("search", advice.search);
  fields("files", advice.files);
}

Json AdviceResult::ToJson() const { return FieldsToJson(*this); }

Result<AdviceResult> AdviceResult::FromJson(const Json& json) { return FieldsFromJson<AdviceResult>(json); }

}  // namespace weir::results
