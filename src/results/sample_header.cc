#include "results/sample_header.h"

#include "base/fields.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, SampleHeader>& header) {
  fields("model", header.model);
  fields("levels", header.levels);
}

Json SampleHeader::ToJson() const { return FieldsToJson(*this); }

Result<SampleHeader> SampleHeader::FromJson(const Json& json) { return FieldsFromJson<SampleHeader>(json); }

}  // namespace weir::results
