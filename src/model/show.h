// The facts that `weir model show` prints.
#pragma once

#include <string>

#include "base/error.h"
#include "base/text_style.h"
#include "model/model.h"
#include "results/model_result.h"

namespace weir::model {

// Returns the facts of a model. Errors as OpenModel.
Result<results::ModelFacts> DescribeModel(const std::string& path);
Result<results::ModelFacts> DescribeModelWith(const std::string& path, const OpenOptions& options);

// Returns the facts of the model at `path` as lines for people.
std::string FactsText(const TextStyle& style, const std::string& path, const results::ModelFacts& facts);

}  // namespace weir::model
