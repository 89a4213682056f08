#include "results/plan_result.h"

#include "base/fields.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, PlanResult::Estimate>& estimate) {
  fields("value", estimate.value);
  fields("low", estimate.low);
  fields("high", estimate.high);
}

template <typename F>
void Describe(F& fields, Described<F, PlanResult::Work>& work) {
  fields("name", work.name);
  fields("units", work.units);
  fields("arithmetic", work.arithmetic);
}

template <typename F>
void Describe(F& fields, Described<F, PlanResult::Resource>& resource) {
  fields("resource", resource.resource);
  fields("needed", resource.needed);
  fields("count", resource.count);
  fields("owned", resource.owned);
  fields("scale", resource.scale);
  fields("busy_percent", resource.busy_percent);
  fields("works", resource.works);
  fields("arithmetic", resource.arithmetic);
  fields("measured_from", resource.measured_from);
}

template <typename F>
void Describe(F& fields, Described<F, PlanResult::Doubling>& doubling) {
  fields("resource", doubling.resource);
  fields("scale", doubling.scale);
  fields("gain", doubling.gain);
  fields("limited_by", doubling.limited_by);
}

template <typename F>
void Describe(F& fields, Described<F, PlanResult>& plan) {
  fields("name", plan.name);
  fields("resources", plan.resources);
  fields("bottleneck", plan.bottleneck);
  fields("scale", plan.scale);
  fields("met", plan.met);
  fields("doubling", plan.doubling);
  fields("assumptions", plan.assumptions);
  fields("provenance", plan.provenance);
}

Json PlanResult::ToJson() const { return FieldsToJson(*this); }

Result<PlanResult> PlanResult::FromJson(const Json& json) { return FieldsFromJson<PlanResult>(json); }

}  // namespace weir::results
