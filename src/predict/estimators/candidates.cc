#include "predict/estimators/candidates.h"

#include <limits>

namespace weir::predict {
namespace {

constexpr double kNoGroups = std::numeric_limits<double>::infinity();
// Rows. Outside the data a group's own rows tell best how it continues; inside, neighbours correct a group
// better than weights of its own do.
constexpr double kPull = 3, kPullInside = 10;
constexpr size_t kMostStacked = 10'000;  // rows for trees that see what neighbours predict, and for deep ones
constexpr size_t kFew = 6000;            // rows up to which slow learning is worth its time

bool BelongsTo(const Recipe& recipe, std::string_view estimator) {
  return estimator == "auto" ? recipe.base != Recipe::Base::kLinear : recipe.kind() == estimator;
}

}  // namespace

std::vector<Recipe> Candidates(Split split, size_t rows, Groups groups, std::string_view estimator) {
  Trees::Options deep{.rounds = 300, .rate = 0.06, .depth = 6};
  if (rows > kFew) deep = {.rounds = 250, .rate = 0.1, .depth = 8, .child_weight = 4};
  Trees::Options own_deep = deep, stacked = deep;
  if (rows <= kFew) {
    own_deep = {.rounds = 600, .rate = 0.05, .depth = 10, .child_weight = 1, .column_share = 0.8};
    stacked = {.rounds = 600, .rate = 0.05, .depth = 8, .child_weight = 1, .penalty = 5};
  }
  const Trees::Options shallow{
      .rounds = 150, .rate = 0.08, .depth = 4, .child_weight = 5, .column_share = 0.5, .penalty = 5};

  const bool inside = split == Split::kInside;
  const bool even = split == Split::kHardware;
  const Physical::Options common{.pull = kNoGroups, .even = even},
      own{.pull = groups == Groups::kCommon ? kNoGroups : (inside ? kPullInside : kPull),
          .own_level = !inside,
          .even = even};
  std::vector<Recipe> recipes = {
      {.name = "physical", .physical = common},
      {.name = "trees", .physical = common, .trees = true, .tree = deep},
      {.name = "neighbours", .physical = common, .neighbours = true},
      {.name = "lr-sfs", .base = Recipe::Base::kLinear},
      {.name = "lr-sfs-relative", .base = Recipe::Base::kLinear, .linear = {.relative = true}},
  };
  if (groups == Groups::kOwn) {
    recipes.push_back({.name = "physical-own", .physical = own});
    recipes.push_back({.name = "neighbours-own", .physical = own, .neighbours = true});
  }
  // Every row asks for its neighbours, so large sets go without.
  if (rows <= kMostStacked)
    recipes.push_back({.name = "trees-neighbours",
                       .physical = own,
                       .trees = true,
                       .neighbours = true,
                       .tree = inside ? stacked : shallow});
  // Deep trees separate rows that are nearly alike, which helps only inside the data.
  if (inside && rows <= kMostStacked)
    recipes.push_back({.name = "trees-own", .physical = own, .trees = true, .tree = own_deep});
  if (split == Split::kCount) {
    // A configuration's error at the largest measured count continues beyond it.
    for (size_t r = 0, count = recipes.size(); r < count; ++r) {
      if (!recipes[r].neighbours) continue;
      recipes.push_back(Carried(recipes[r]));
    }
  }
  std::erase_if(recipes, [&](const Recipe& recipe) { return !BelongsTo(recipe, estimator); });
  return recipes;
}

Recipe Carried(Recipe recipe) {
  recipe.name = std::string(recipe.kind()) + "-carried" + (recipe.name.ends_with("-own") ? "-own" : "");
  recipe.carried = true;
  return recipe;
}

}  // namespace weir::predict
