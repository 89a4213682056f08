// The recipes of a preparation that makes several sets of one decode.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "prepare/prepare.h"

namespace weir::prepare {

// Reads "a.yaml,b.yaml": a variation for each recipe, named after its file, or after its folder for a model's
// recipe.yaml. A file whose whole name is `text` is read as one recipe. Errors as dataset::ReadRecipe.
Result<std::vector<Variation>> ReadVariations(const std::string& text);

}  // namespace weir::prepare
