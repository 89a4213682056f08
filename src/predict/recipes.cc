#include "predict/recipes.h"

#include <limits>

namespace weir::predict {
namespace {

constexpr double kNoGroups = std::numeric_limits<double>::infinity();

constexpr std::string_view kOwn = "-own", kCarried = "-carried";
// Rows. Outside, a group's own rows say best how it goes on; inside, neighbours know a group better
// than its own weights do, and what is left to them should be like the others.
constexpr double kPull = 3, kPullInside = 10;
constexpr size_t kMostStacked = 10'000;  // rows for trees upon neighbours, and for deep ones

// What a configuration was off by at the largest count seen may go on beyond it.
void AddCarried(std::vector<Recipe>& recipes) {
  const size_t own = recipes.size();
  for (size_t r = 0; r < own; ++r) {
    if (!recipes[r].neighbours) continue;
    Recipe carried = recipes[r];
    carried.name += kCarried;
    carried.carried = true;
    recipes.push_back(std::move(carried));
  }
}

std::string_view Without(std::string_view name, std::string_view end) {
  if (name.ends_with(end)) name.remove_suffix(end.size());
  return name;
}

}  // namespace

std::vector<Recipe> Candidates(Question question, size_t rows, Groups groups) {
  Trees::Options deep{.rounds = 300, .rate = 0.06, .depth = 6};
  if (rows > 6000) deep = {.rounds = 250, .rate = 0.1, .depth = 8, .child_weight = 4};
  // Of a few thousand rows many are alike but for one thing: such pairs are told apart.
  Trees::Options own_deep = deep, stacked = deep;
  if (rows <= 6000) {
    own_deep = {.rounds = 600, .rate = 0.05, .depth = 10, .child_weight = 1, .column_share = 0.8};
    stacked = {.rounds = 600, .rate = 0.05, .depth = 8, .child_weight = 1, .penalty = 5};
  }
  const Trees::Options shallow{
      .rounds = 150, .rate = 0.08, .depth = 4, .child_weight = 5, .column_share = 0.5, .penalty = 5};

  const bool inside = question == Question::kInside;
  const bool even = question == Question::kHardware;
  const Physical::Options common{.pull = kNoGroups, .even = even},
      own{.pull = groups == Groups::kCommon ? kNoGroups : (inside ? kPullInside : kPull),
          .own_level = !inside,
          .even = even};
  std::vector<Recipe> recipes = {
      {.name = "physical", .physical = common},
      {.name = "physical-own", .physical = own},
      {.name = "trees", .physical = common, .trees = true, .tree = deep},
      {.name = "trees-shape", .physical = own, .trees = true, .sees_hardware = false, .tree = shallow},
      {.name = "neighbours", .physical = common, .neighbours = true},
      {.name = "neighbours-own", .physical = own, .neighbours = true},
      {.name = "trees-neighbours",
       .physical = own,
       .trees = true,
       .neighbours = true,
       .tree = inside ? stacked : shallow},
      {.name = "lr-sfs", .base = Recipe::Base::kLinear},
      {.name = "lr-sfs-relative", .base = Recipe::Base::kLinear, .linear = {.relative = true}},
  };
  // Elsewhere what tells one row from its twin says nothing; of many rows such trees would take long to read.
  if (inside && rows <= kMostStacked)
    recipes.push_back({.name = "trees-own", .physical = own, .trees = true, .tree = own_deep});
  // It asks for the neighbours of every row.
  if (rows > kMostStacked) {
    std::erase_if(recipes, [](const Recipe& recipe) { return recipe.trees && recipe.neighbours; });
  }
  if (groups == Groups::kCommon) {
    std::erase_if(recipes, [](const Recipe& recipe) { return recipe.name.ends_with(kOwn); });
  }
  if (question == Question::kCount) AddCarried(recipes);
  return recipes;
}

bool BelongsTo(const Recipe& recipe, std::string_view name) {
  if (name == "auto") return recipe.base != Recipe::Base::kLinear;
  return Without(Without(recipe.name, kCarried), kOwn) == name;
}

}  // namespace weir::predict
