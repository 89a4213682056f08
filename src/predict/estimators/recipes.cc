#include "predict/estimators/recipes.h"

#include <limits>

namespace weir::predict {
namespace {

constexpr double kNoGroups = std::numeric_limits<double>::infinity();
// Rows. Outside the data a group's own rows tell best how it continues; inside, neighbours correct a group
// better than weights of its own do.
constexpr double kPull = 3, kPullInside = 10;

}  // namespace

std::vector<std::string> EstimatorNames() {
  return {std::string(kNeighbours), std::string(kPhysical), std::string(kLinear),
          std::string(kLinearRelative)};
}

Recipe RecipeOf(const Spec& spec, std::string_view name, Split split, Groups groups) {
  Recipe recipe{.name = std::string(name)};
  if (name == kLinear || name == kLinearRelative) {
    recipe.base = Recipe::Base::kLinear;
    recipe.linear.relative = name == kLinearRelative;
    return recipe;
  }
  const bool inside = split == Split::kInside;
  recipe.physical = {.pull = groups == Groups::kCommon ? kNoGroups : (inside ? kPullInside : kPull),
                     .own_level = !inside,
                     .even = split == Split::kHardware,
                     .least = spec.LeastWeights()};
  return recipe;
}

}  // namespace weir::predict
