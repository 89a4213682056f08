// Compares the finished sets of a folder with their manifests: `weir prepare --verify`.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/verify.h"
#include "results/check_results.h"

namespace weir::prepare {

// Returns the folders that hold a set of their own, in byte order: `folder` itself, or those of parts,
// variations and shares inside it.
std::vector<std::string> FindSets(const std::string& folder);

// Verifies every set of `folder`. kNotFound if there is none; other errors as dataset::VerifySet.
Result<results::VerifyResult> VerifyFolder(const std::string& folder, const dataset::VerifyOptions& options);

// Returns the faults that were found first, and a line for each set.
std::string VerifyText(const results::VerifyResult& result);

}  // namespace weir::prepare
