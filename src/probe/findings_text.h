// Findings about this machine: text for people, and the typed result.
#pragma once

#include <string>
#include <vector>

#include "base/text_style.h"
#include "probe/finding.h"
#include "results/check_results.h"

namespace weir::probe {

// Returns each finding with its meaning and remedy, and how many would spoil a measurement.
std::string FindingsText(const TextStyle& style, const std::vector<Finding>& findings);

// Returns the same findings, without the provenance.
results::DoctorResult MakeDoctorResult(const std::vector<Finding>& findings);

}  // namespace weir::probe
