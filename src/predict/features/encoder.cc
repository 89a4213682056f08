#include "predict/features/encoder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace weir::predict {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Encoder Encoder::Learn(const Spec& spec, const std::vector<Row>& rows) {
  Encoder encoder;
  for (size_t j = 0; j < spec.numbers.size(); ++j) {
    Scale scale{.log = true};
    double n = 0, sum = 0, squares = 0;
    for (const Row& row : rows) {
      if (row.numbers[j] <= 0) scale.log = false;
    }
    for (const int pass : {0, 1}) {
      for (const Row& row : rows) {
        if (std::isnan(row.numbers[j])) continue;
        const double x = scale.log ? std::log(row.numbers[j]) : row.numbers[j];
        if (pass == 0) {
          n += 1;
          sum += x;
        } else {
          squares += (x - scale.mean) * (x - scale.mean);
        }
      }
      if (pass == 0) scale.mean = n > 0 ? sum / n : 0;
    }
    scale.deviation = n > 0 && squares > 1e-12 * n ? std::sqrt(squares / n) : 1;
    encoder.scales_.push_back(scale);
  }
  for (size_t j = 0; j < spec.categories.size(); ++j) {
    std::map<std::string, int64_t> counts;
    for (const Row& row : rows) ++counts[row.categories[j]];
    auto& levels = encoder.levels_.emplace_back();
    auto& tally = encoder.counts_.emplace_back();
    for (const auto& [level, count] : counts) {
      levels.emplace(level, static_cast<int>(levels.size()));
      tally.push_back(count);
    }
  }
  return encoder;
}

std::vector<float> Encoder::Coordinates(const Row& row) const {
  std::vector<float> coordinates(scales_.size());
  for (size_t j = 0; j < scales_.size(); ++j) {
    const Scale& scale = scales_[j];
    const double x = scale.log ? (row.numbers[j] > 0 ? std::log(row.numbers[j]) : kUnknown) : row.numbers[j];
    coordinates[j] = static_cast<float>((x - scale.mean) / scale.deviation);
  }
  return coordinates;
}

std::vector<int> Encoder::Codes(const Row& row) const {
  std::vector<int> codes(levels_.size());
  for (size_t j = 0; j < levels_.size(); ++j) {
    const auto found = levels_[j].find(row.categories[j]);
    codes[j] = found == levels_[j].end() ? -1 : found->second;
  }
  return codes;
}

std::vector<std::string> Encoder::Levels(size_t category) const {
  std::vector<std::string> names;
  for (const auto& [name, code] : levels_[category]) names.push_back(name);
  return names;
}

std::vector<std::string> Encoder::MostCommon(size_t category, size_t most) const {
  std::vector<std::string> names = Levels(category);
  const auto count = [&](const std::string& name) { return Count(category, levels_[category].at(name)); };
  std::ranges::stable_sort(names, std::greater(), count);
  names.resize(std::min(names.size(), most));
  return names;
}

Json Encoder::ToJson() const {
  Json scales = Json::array(), categories = Json::array();
  for (const Scale& scale : scales_) {
    scales.push_back({{"log", scale.log}, {"mean", scale.mean}, {"deviation", scale.deviation}});
  }
  for (size_t j = 0; j < levels_.size(); ++j) {
    Json levels = Json::array();  // in order of their codes, which is that of their names
    for (const auto& [level, code] : levels_[j]) {
      levels.push_back({EscapeBytes(level), counts_[j][static_cast<size_t>(code)]});
    }
    categories.push_back(std::move(levels));
  }
  return {{"scales", std::move(scales)}, {"categories", std::move(categories)}};
}

Result<Encoder> Encoder::FromJson(const Json& json) {
  Encoder encoder;
  const auto corrupt = [] { return Fail(ErrorCode::kCorrupt, "the encoder is not whole"); };
  if (!json.is_object() || !json.contains("scales") || !json.contains("categories")) return corrupt();
  for (const Json& item : json["scales"]) {
    if (!item.is_object() || !item.contains("log") || !item["log"].is_boolean()) return corrupt();
    encoder.scales_.push_back({.log = item["log"].get<bool>(),
                               .mean = TRY(GetNumber(item, "mean")),
                               .deviation = TRY(GetNumber(item, "deviation"))});
  }
  for (const Json& category : json["categories"]) {
    auto& levels = encoder.levels_.emplace_back();
    auto& counts = encoder.counts_.emplace_back();
    for (const Json& level : category) {
      if (!level.is_array() || level.size() != 2 || !level[0].is_string() || !level[1].is_number_integer()) {
        return corrupt();
      }
      levels.emplace(TRY(UnescapeBytes(level[0].get<std::string>())), static_cast<int>(levels.size()));
      counts.push_back(level[1].get<int64_t>());
    }
  }
  return encoder;
}

}  // namespace weir::predict
