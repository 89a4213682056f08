#include "results/check_results.h"

#include "base/fields.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, ValidateResult::Finding>& finding) {
  fields("rule", finding.rule);
  fields("where", finding.where);
  fields("what", finding.what);
  fields("fatal", finding.fatal);
}

template <typename F>
void Describe(F& fields, Described<F, ValidateResult>& result) {
  fields("findings", result.findings);
  fields("keeps_the_rules", result.keeps_the_rules);
}

template <typename F>
void Describe(F& fields, Described<F, VerifyResult::Set>& set) {
  fields("folder", set.folder);
  fields("images", set.images);
  fields("bytes", set.bytes);
  fields("faults", set.faults);
  fields("examples", set.examples);
}

template <typename F>
void Describe(F& fields, Described<F, VerifyResult>& result) {
  fields("faults", result.faults);
  fields("sets", result.sets);
}

template <typename F>
void Describe(F& fields, Described<F, DoctorResult::Finding>& finding) {
  fields("kind", finding.kind);
  fields("severity", finding.severity);
  fields("what", finding.what);
  fields("meaning", finding.meaning);
  fields("remedy", finding.remedy);
}

template <typename F>
void Describe(F& fields, Described<F, DoctorResult>& result) {
  fields("findings", result.findings);
  fields("warnings", result.warnings);
  fields("provenance", result.provenance);
}

Json ValidateResult::ToJson() const { return FieldsToJson(*this); }

Result<ValidateResult> ValidateResult::FromJson(const Json& json) {
  return FieldsFromJson<ValidateResult>(json);
}

Json VerifyResult::ToJson() const { return FieldsToJson(*this); }

Result<VerifyResult> VerifyResult::FromJson(const Json& json) { return FieldsFromJson<VerifyResult>(json); }

Json DoctorResult::ToJson() const { return FieldsToJson(*this); }

Result<DoctorResult> DoctorResult::FromJson(const Json& json) { return FieldsFromJson<DoctorResult>(json); }

}  // namespace weir::results
