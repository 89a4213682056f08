#include "predict/table/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/contains.h"
#include "base/csv.h"
#include "record/trials.h"

namespace weir::predict {
namespace {

constexpr std::string_view kTarget = "throughput_images_per_s";

}  // namespace

Result<std::string> SpecOfTrials(std::string_view journal, const std::string& name) {
  std::map<std::string, std::set<std::string>> factors;
  bool has_target = false;
  for (const record::Trial& trial : TRY(record::LastTrials(journal))) {
    for (const auto& [factor, level] : trial.factors) factors[factor].insert(level);
    has_target = has_target || Contains(trial.metrics, kTarget, &record::Trial::Cells::value_type::first);
  }
  std::erase_if(factors, [](const auto& factor) { return factor.second.size() < 2; });
  if (factors.empty() || !has_target)
    return Fail(ErrorCode::kInvalidArgument,
                has_target ? "no factor of the study has two levels: there is nothing to learn"
                           : fmt::format("no trial of the study has {}", kTarget));
  std::string terms = "each: 1", numbers, categories;
  for (const auto& [factor, levels] : factors) {
    const bool is_number = std::ranges::all_of(levels, [](const std::string& level) {
      const auto number = ParseNumber(level);
      return number && *number > 0;
    });
    const auto add = [&](std::string& list) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", factor);
    };
    add(is_number ? numbers : categories);
    if (is_number) terms += fmt::format(", {0}: '{0} ?? 1', {0}_inverse: '1 / ({0} ?? 1)'", factor);
  }
  std::string spec = fmt::format(
      "predict: \"{}\"\nrows: journal.jsonl\nid: id\nskip: role != 'trial' or verdict == 'INVALID'\n"
      "target: {{column: {}, kind: rate}}\nof: item\nterms: {{{}}}\nsplits: [inside]\n"
      "numbers: {{run: {}}}\n",
      name, kTarget, terms, numbers.empty() ? "{one: 1}" : "[" + numbers + "]");
  if (!numbers.empty()) spec += fmt::format("ranges: [{}]\n", numbers);
  if (!categories.empty()) spec += fmt::format("physics_by: [{0}]\ncategories: {{run: [{0}]}}\n", categories);
  return spec;
}

}  // namespace weir::predict
