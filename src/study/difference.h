// The differences between two JSON values, in lines for people. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::study {

// One line for each leaf that differs, with its path: "build_id: 4f2a before, 91bc now". Maps are compared
// key by key whatever their order, lists place by place. Lists of different lengths, and values of different
// kinds, are shown whole, cut to 200 bytes.
std::vector<std::string> Differences(const Json& before, const Json& now);

// The same of two Provenances (record/provenance.h), without what may change from one run to the next: the
// command, the seed (it is the study's), the wall time, and where models and data lie ("resolved"). What a
// caller adds, such as the model's digest, is compared.
std::vector<std::string> ProvenanceDifferences(const Json& before, const Json& now);

}  // namespace weir::study
