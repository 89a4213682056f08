#include "data/axis.h"

#include <algorithm>
#include <cmath>

namespace weir::data {

Axis MakeAxis(int64_t source, int64_t target, int64_t first, int64_t count) {
  return MakeAxis(source, static_cast<double>(source), target, first, count);
}

Axis MakeAxis(int64_t source, double extent, int64_t target, int64_t first, int64_t count) {
  const double scale = extent / static_cast<double>(target);
  const double filter_scale = std::max(scale, 1.0);
  const double support =
      filter_scale;  // the triangle reaches 1 source pixel, or 1 target pixel when reducing
  const double inverse = 1.0 / filter_scale;
  Axis axis;
  axis.begins.resize(count);
  axis.counts.resize(count);
  const auto centre = [&](int64_t i) { return (static_cast<double>(first + i) + 0.5) * scale; };
  for (int64_t i = 0; i < count; ++i) {
    axis.begins[i] = std::max<int64_t>(static_cast<int64_t>(centre(i) - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre(i) + support + 0.5), source);
    axis.counts[i] = static_cast<int32_t>(end - axis.begins[i]);
    axis.stride = std::max(axis.stride, (axis.counts[i] + 3) / 4 * 4);
  }
  axis.weights.resize(count * axis.stride);
  std::vector<double> shares(axis.stride);
  for (int64_t i = 0; i < count; ++i) {
    double total = 0;
    for (int32_t k = 0; k < axis.counts[i]; ++k) {
      const double distance = std::abs((static_cast<double>(k + axis.begins[i]) - centre(i) + 0.5) * inverse);
      shares[k] = distance < 1.0 ? 1.0 - distance : 0.0;
      total += shares[k];
    }
    constexpr double kUnits = 1 << Axis::kWeightBits;
    for (int32_t k = 0; k < axis.counts[i]; ++k) {
      const double share = total != 0.0 ? shares[k] / total : shares[k];
      axis.weights[i * axis.stride + k] = static_cast<int32_t>(0.5 + share * kUnits);
    }
  }
  return axis;
}

Axis Mirror(const Axis& axis, int64_t source) {
  Axis mirrored = axis;
  std::ranges::fill(mirrored.weights, 0);
  const int64_t size = axis.size();
  for (int64_t i = 0; i < size; ++i) {
    const int64_t from = size - 1 - i;
    mirrored.begins[i] = source - axis.begins[from] - axis.counts[from];
    mirrored.counts[i] = axis.counts[from];
    std::reverse_copy(&axis.weights[from * axis.stride],
                      &axis.weights[from * axis.stride] + axis.counts[from],
                      &mirrored.weights[i * axis.stride]);
  }
  return mirrored;
}

}  // namespace weir::data
