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

}  // namespace weir::predict
