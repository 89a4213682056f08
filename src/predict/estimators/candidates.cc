#include "predict/estimators/candidates.h"

#include <limits>

#include "base/contains.h"

namespace weir::predict {
namespace {

constexpr double kNoGroups = std::numeric_limits<double>::infinity();
// Rows. Outside the data a group's own rows tell best how it continues; inside, neighbours correct a group
// better than weights of its own do.
constexpr double kPull = 3, kPullInside = 10;
constexpr size_t kFew = 6000;  // rows up to which slow learning is worth its time

}  // namespace

std::vector<std::string> CandidateNames() {
  return {"physical", "trees", "neighbours", "neighbours-common", "lr-sfs", "lr-sfs-relative"};
}

std::vector<Recipe> Candidates(Split split, size_t rows, Groups groups, std::span<const std::string> names) {
  const bool inside = split == Split::kInside, even = split == Split::kHardware;
  const Physical::Options common{.pull = kNoGroups, .even = even},
      own{.pull = groups == Groups::kCommon ? kNoGroups : (inside ? kPullInside : kPull),
          .own_level = !inside,
          .even = even};
  Trees::Options deep{.rounds = 300, .rate = 0.06, .depth = 6};
  if (rows > kFew) deep = {.rounds = 250, .rate = 0.1, .depth = 8, .child_weight = 4};

  std::vector<Recipe> recipes = {
      {.name = "physical", .physical = own},
      {.name = "trees", .physical = common, .trees = true, .tree = deep},
      {.name = "lr-sfs", .base = Recipe::Base::kLinear},
      {.name = "lr-sfs-relative", .base = Recipe::Base::kLinear, .linear = {.relative = true}},
      // The part that groups have in common, corrected by neighbours of any group.
      {.name = "neighbours-common", .physical = common, .neighbours = true},
      {.name = "neighbours", .physical = own, .neighbours = true},
  };
  std::erase_if(recipes, [&](const Recipe& recipe) {
    return names.empty() ? recipe.base == Recipe::Base::kLinear : !Contains(names, recipe.name);
  });
  // Without weights of groups both are the same.
  if (groups == Groups::kCommon && Contains(recipes, "neighbours", &Recipe::name))
    std::erase_if(recipes, [](const Recipe& recipe) { return recipe.name == "neighbours-common"; });
  return recipes;
}

}  // namespace weir::predict
