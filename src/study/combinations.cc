#include "study/combinations.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "study/factor.h"

namespace weir::study {
namespace {

constexpr size_t kMostCombinations = 100'000;

const FactorLevels* Find(const LevelLists& lists, std::string_view factor) {
  const auto found = std::ranges::find(lists, factor, &FactorLevels::factor);
  return found == lists.end() ? nullptr : &*found;
}

bool IsNamed(const StudyFile& study, std::string_view factor) {
  for (const LevelLists* lists : {&study.factors, &study.fixed, &study.base, &study.reference}) {
    if (Find(*lists, factor)) return true;
  }
  return std::ranges::any_of(study.also,
                             [&](const LevelLists& lists) { return Find(lists, factor) != nullptr; });
}

// `start` with every combination of the lists' levels in it, the last factor of Factors() fastest.
Result<std::vector<Json>> Product(const Json& start, const LevelLists& lists) {
  std::vector<Json> all{start};
  for (const Factor& factor : Factors()) {
    const FactorLevels* const levels = Find(lists, factor.name);
    if (!levels) continue;
    if (all.size() * levels->levels.size() > kMostCombinations) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("the study has more than {} combinations; vary fewer factors, or use design: star",
                      kMostCombinations));
    }
    std::vector<Json> longer;
    for (const Json& one : all) {
      for (const Json& level : levels->levels) {
        longer.push_back(one);
        longer.back()[levels->factor] = level;
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace

Json BaseCombination(const StudyFile& study, const LevelLists& over) {
  Json combination = Json::object();
  for (const Factor& factor : Factors()) {
    const std::string name(factor.name);
    const FactorLevels* found = nullptr;
    for (const LevelLists* lists : {&over, &study.base, &study.fixed, &study.factors}) {
      if (!found) found = Find(*lists, name);
    }
    if (found) {
      combination[name] = found->levels.front();
    } else if (factor.otherwise && IsNamed(study, name)) {
      combination[name] = *factor.otherwise;
    }
  }
  return combination;
}

Result<std::vector<Json>> AllCombinations(const StudyFile& study) {
  const Json base = BaseCombination(study);
  std::vector<LevelLists> products;
  if (study.layout == Layout::kFactorial) {
    products.push_back(study.factors);
  } else {
    products.emplace_back();  // the base itself
    for (const Factor& factor : Factors()) {
      if (const FactorLevels* levels = Find(study.factors, factor.name)) products.push_back({*levels});
    }
  }
  products.insert(products.end(), study.also.begin(), study.also.end());

  std::vector<Json> all;
  std::set<std::string> seen;
  for (const LevelLists& lists : products) {
    std::vector<Json> product = TRY(Product(base, lists));
    for (Json& one : product) {
      if (seen.insert(DumpJson(one)).second) all.push_back(std::move(one));
    }
    if (all.size() > kMostCombinations) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("the study has more than {} combinations", kMostCombinations));
    }
  }
  return all;
}

bool Matches(const Json& factors, const LevelLists& lists) {
  return std::ranges::all_of(lists, [&factors](const FactorLevels& one) {
    const auto level = factors.find(one.factor);
    return level != factors.end() && std::ranges::find(one.levels, *level) != one.levels.end();
  });
}

}  // namespace weir::study
