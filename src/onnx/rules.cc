#include "onnx/rules.h"

namespace weir::onnx {

Dims Broadcast(const Dims& a, const Dims& b) {
  if (!a || !b) return std::nullopt;
  const Sizes& longer = a->size() >= b->size() ? *a : *b;
  const Sizes& shorter = a->size() >= b->size() ? *b : *a;
  Sizes dims = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dim = dims[i + shift];
    if (dim == 1) {
      dim = shorter[i];
    } else if (!Known(dim)) {
      dim = shorter[i] > 1 ? shorter[i] : kUnknownDim;
    }
  }
  return dims;
}

std::optional<Sizes> AxesOf(const Op& op) {
  if (auto axes = op.Ints("axes")) return axes;
  if (op.HasInput(1)) return op.InputIntegers(1);
  return Sizes{};
}

std::optional<std::vector<bool>> Marked(const Sizes& axes, size_t rank) {
  std::vector<bool> marked(rank, false);
  for (const int64_t axis : axes) {
    const auto at = Axis(axis, rank);
    if (!at) return std::nullopt;
    marked[*at] = true;
  }
  return marked;
}

}  // namespace weir::onnx
