#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "predict/blocks.h"
#include "predict/estimators/estimator.h"

namespace weir::predict {
namespace {

Json KernelJson(const Kernel& kernel) {
  return {{"number_weights", kernel.number_weights},
          {"category_weights", kernel.category_weights},
          {"all", kernel.all},
          {"network", kernel.network},
          {"hardware", kernel.hardware},
          {"run", kernel.run},
          {"noise", kernel.noise}};
}

Result<std::vector<double>> Numbers(const Json& json, const char* key, size_t count) {
  std::vector<double> numbers;
  if (json.contains(key) && json[key].is_array()) {
    for (const Json& item : json[key]) {
      if (!item.is_number()) break;
      numbers.push_back(item.get<double>());
    }
  }
  if (numbers.size() != count) {
    return Fail(ErrorCode::kCorrupt, std::string("an estimator's ") + key + " do not fit the spec");
  }
  return numbers;
}

Result<Kernel> KernelFrom(const Json& json, const Spec& spec) {
  return Kernel{.number_weights = TRY(Numbers(json, "number_weights", spec.numbers.size())),
                .category_weights = TRY(Numbers(json, "category_weights", spec.categories.size())),
                .all = TRY(GetNumber(json, "all")),
                .network = TRY(GetNumber(json, "network")),
                .hardware = TRY(GetNumber(json, "hardware")),
                .run = TRY(GetNumber(json, "run")),
                .noise = TRY(GetNumber(json, "noise"))};
}

}  // namespace

Json Estimator::ToJson() const {
  Json json{{"name", recipe_.name}};
  if (linear_) json["linear"] = linear_->ToJson();
  if (physical_) json["physical"] = physical_->ToJson();
  if (trees_) {
    json["trees"] = trees_->ToJson();
    json["tree_numbers"] = tree_numbers_;
    Json levels = Json::array();
    for (const auto& [category, level] : tree_levels_) levels.push_back({category, level});
    json["tree_levels"] = std::move(levels);
  }
  if (neighbours_) {
    // Every row of the predictor, in its order; a final fit leaves none out.
    json["values"] =
        EncodeBlock(std::vector<float>(neighbours_->values().begin(), neighbours_->values().end()));
    json["kernel"] = KernelJson(neighbours_->kernel());
    json["count"] = neighbours_->count();
  }
  if (recipe_.carried) json["range"] = {EncodeBlock(least_), EncodeBlock(greatest_)};
  return json;
}

Result<Estimator> Estimator::FromJson(const Json& json, const Data& data) {
  const auto corrupt = [](const char* what) { return Fail(ErrorCode::kCorrupt, what); };
  if (!json.is_object()) return corrupt("an estimator is not whole");
  Estimator estimator;
  estimator.recipe_.name = TRY(GetString(json, "name"));
  if (json.contains("linear")) estimator.linear_ = TRY(LinearFit::FromJson(json["linear"], data.spec));
  if (json.contains("physical")) estimator.physical_ = TRY(Physical::FromJson(json["physical"]));
  if (!estimator.linear_ && !estimator.physical_) return corrupt("an estimator has no base");
  if (estimator.physical_ && estimator.physical_->weights().size() != data.spec.terms.size()) {
    return corrupt("the physical model does not fit the spec");
  }
  if (json.contains("trees")) {
    estimator.trees_ = TRY(Trees::FromJson(json["trees"]));
    if (!json.contains("tree_numbers") || !json.contains("tree_levels") || !estimator.physical_) {
      return corrupt("an estimator's trees have no columns");
    }
    for (const Json& item : json["tree_numbers"]) {
      if (!item.is_number_integer() || item.get<int>() < 0 ||
          item.get<int>() >= std::ssize(data.spec.numbers)) {
        return corrupt("a column of the trees is none of the spec");
      }
      estimator.tree_numbers_.push_back(item.get<int>());
    }
    for (const Json& item : json["tree_levels"]) {
      if (!item.is_array() || item.size() != 2 || !item[0].is_number_integer() ||
          !item[1].is_number_integer() || item[0].get<int>() < 0 ||
          item[0].get<int>() >= std::ssize(data.spec.categories)) {
        return corrupt("a level of the trees is none of the spec");
      }
      estimator.tree_levels_.emplace_back(item[0].get<int>(), item[1].get<int>());
    }
    const size_t columns = estimator.tree_numbers_.size() + estimator.tree_levels_.size() +
                           2 * data.spec.terms.size() + (json.contains("values") ? 1 : 0);
    if (static_cast<size_t>(estimator.trees_->columns()) != columns)
      return corrupt("the trees do not fit the spec");
  }
  if (json.contains("range")) {
    const Json& range = json["range"];
    if (!range.is_array() || range.size() != 2 || !range[0].is_string() || !range[1].is_string())
      return corrupt("the range of an estimator is not whole");
    estimator.recipe_.carried = true;
    estimator.least_ = TRY(DecodeBlock<float>(range[0].get<std::string>()));
    estimator.greatest_ = TRY(DecodeBlock<float>(range[1].get<std::string>()));
    if (estimator.least_.size() != data.spec.numbers.size() ||
        estimator.greatest_.size() != data.spec.numbers.size())
      return corrupt("the range of an estimator does not fit the spec");
  }
  if (json.contains("values")) {
    const auto values = TRY(DecodeBlock<float>(TRY(GetString(json, "values"))));
    if (values.size() != data.numbers.size()) return corrupt("neighbours without their rows");
    std::vector<int> all(values.size());
    std::iota(all.begin(), all.end(), 0);
    const auto count = TRY(GetInteger(json, "count"));
    if (count < 1 || count > 2000 || !json.contains("kernel")) return corrupt("neighbours are not whole");
    estimator.neighbours_.emplace(MakePoints(data, all), std::vector<double>(values.begin(), values.end()),
                                  TRY(KernelFrom(json["kernel"], data.spec)), static_cast<int>(count));
  }
  return estimator;
}

}  // namespace weir::predict
