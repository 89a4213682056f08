#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "onnx/content.h"
#include "onnx/rules.h"

namespace weir::onnx {
namespace {

void Slice(Op& op) {
  Dims dims = op.InputDims(0);
  if (!dims) return;
  auto starts = op.Ints("starts"), ends = op.Ints("ends"), axes = op.Ints("axes");  // opset 1
  if (!starts) {
    starts = op.InputIntegers(1);
    ends = op.InputIntegers(2);
    axes = op.HasInput(3) ? op.InputIntegers(3) : std::nullopt;
  }
  const bool axes_hidden = op.HasInput(3) && !axes;
  auto steps = op.HasInput(4) ? op.InputIntegers(4) : std::nullopt;
  const bool known =
      starts && ends && starts->size() == ends->size() && !axes_hidden && (steps || !op.HasInput(4));
  if (!known) return op.SetDims(0, Sizes(dims->size(), kUnknownDim));
  for (size_t i = 0; i < starts->size(); ++i) {
    if ((axes && i >= axes->size()) || (steps && i >= steps->size())) return;
    const auto axis = Axis(axes ? (*axes)[i] : static_cast<int64_t>(i), dims->size());
    const int64_t step = steps ? (*steps)[i] : 1;
    if (!axis || step == 0 || step == std::numeric_limits<int64_t>::min()) return;
    int64_t& dim = (*dims)[*axis];
    if (Known(dim)) dim = SliceLength(dim, (*starts)[i], (*ends)[i], step);
  }
  op.SetDims(0, dims);
}

void Split(Op& op) {
  const Dims data = op.InputDims(0);
  if (!data) return;
  const auto axis = Axis(op.Int("axis", 0), data->size());
  if (!axis || op.outputs() == 0) return;
  auto sizes = op.Ints("split");
  if (!sizes && op.HasInput(1)) sizes = op.InputIntegers(1);
  const bool equal = !op.Has("split") && !op.HasInput(1);
  const int64_t whole = (*data)[*axis], parts = static_cast<int64_t>(op.outputs());
  const int64_t part = Known(whole) ? (whole + parts - 1) / parts : kUnknownDim;  // the last may be smaller
  for (size_t i = 0; i < op.outputs(); ++i) {
    Sizes dims = *data;
    dims[*axis] = kUnknownDim;
    if (equal && Known(whole))
      dims[*axis] = std::clamp<int64_t>(whole - part * static_cast<int64_t>(i), 0, part);
    if (sizes && i < sizes->size()) dims[*axis] = (*sizes)[i];
    op.SetDims(i, dims);
    if (const Value* value = op.Input(0)) op.SetType(i, value->type);
  }
}

void Pad(Op& op) {
  Dims dims = op.InputDims(0);
  if (!dims) return;
  auto pads = op.Ints("pads");
  if (!pads) pads = op.Ints("paddings");  // opset 1
  if (!pads) pads = op.InputIntegers(1);
  Sizes axes(dims->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (op.HasInput(3)) {
    const auto named = op.InputIntegers(3);
    if (!named) return op.SetDims(0, Sizes(dims->size(), kUnknownDim));
    axes = *named;
  }
  if (!pads || pads->size() != 2 * axes.size()) return op.SetDims(0, Sizes(dims->size(), kUnknownDim));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = Axis(axes[i], dims->size());
    if (!axis) return;
    int64_t& dim = (*dims)[*axis];
    const int64_t begin = std::clamp((*pads)[i], -kMaxDim, kMaxDim);
    const int64_t end = std::clamp((*pads)[i + axes.size()], -kMaxDim, kMaxDim);
    if (Known(dim)) dim = std::max(dim + begin + end, kUnknownDim);
  }
  op.SetDims(0, dims);
}

void Expand(Op& op) {
  const Content target = op.InputContent(1);
  if (!target || target->size() > kMaxRank) return;
  Sizes wanted;
  for (const double number : *target)
    wanted.push_back(std::max(ToInteger(number).value_or(kUnknownDim), kUnknownDim));
  op.SetDims(0, Broadcast(op.InputDims(0), wanted));
}

void Tile(Op& op) {
  Dims dims = op.InputDims(0);
  const auto repeats = op.InputIntegers(1);
  if (!dims || !repeats || repeats->size() != dims->size()) return;
  for (size_t i = 0; i < dims->size(); ++i) {
    int64_t& dim = (*dims)[i];
    if (!Known(dim) || (*repeats)[i] < 0 || __builtin_mul_overflow(dim, (*repeats)[i], &dim))
      dim = kUnknownDim;
  }
  op.SetDims(0, dims);
}

// An attribute in the oldest opset, input 1 up to 10, input 2 after; empty where there are none, or unknown
// ones.
std::vector<double> ScalesOf(const Op& op) {
  if (const auto scales = op.Floats("scales")) return *scales;
  const bool old = op.type() == "Upsample" || op.inputs() == 2;
  if (const Content scales = op.InputContent(old ? 1 : 2)) return *scales;
  return {};
}

// Resize and Upsample: to sizes, or by scales; from opset 18 perhaps of some axes only.
void Resize(Op& op) {
  Dims dims = op.InputDims(0);
  if (!dims) return;
  const Sizes sizes = op.InputIntegers(3).value_or(Sizes{});
  const std::vector<double> scales = ScalesOf(op);
  const size_t count = sizes.empty() ? scales.size() : sizes.size();
  const auto axes = op.Ints("axes");
  const bool stretches = op.Text("keep_aspect_ratio_policy", "stretch") == "stretch";
  if (!stretches || count != (axes ? axes->size() : dims->size()))
    return op.SetDims(0, Sizes(dims->size(), kUnknownDim));
  for (size_t i = 0; i < count; ++i) {
    const auto axis = Axis(axes ? (*axes)[i] : static_cast<int64_t>(i), dims->size());
    if (!axis) return;
    int64_t& dim = (*dims)[*axis];
    if (!sizes.empty()) {
      dim = sizes[i];
    } else if (Known(dim)) {
      dim = ToInteger(std::floor(static_cast<double>(dim) * scales[i])).value_or(kUnknownDim);
    }
  }
  op.SetDims(0, dims);
}

void Reduce(Op& op) {
  const Dims data = op.InputDims(0);
  const auto axes = AxesOf(op);
  if (!data || !axes) return;
  if (axes->empty() && op.Int("noop_with_empty_axes", 0) != 0) return op.SetDims(0, data);
  const auto marked = Marked(*axes, data->size());
  if (!marked) return;
  Sizes dims;
  for (size_t i = 0; i < data->size(); ++i) {
    const bool reduced = axes->empty() || (*marked)[i];
    if (!reduced) dims.push_back((*data)[i]);
    if (reduced && op.Int("keepdims", 1) != 0) dims.push_back(1);
  }
  op.SetDims(0, dims);
}

void ArgReduce(Op& op) {
  op.SetType(0, pb::TensorProto::INT64);
  Dims dims = op.InputDims(0);
  if (!dims) return;
  const auto axis = Axis(op.Int("axis", 0), dims->size());
  if (!axis) return;
  (*dims)[*axis] = 1;
  if (op.Int("keepdims", 1) == 0) dims->erase(dims->begin() + static_cast<ptrdiff_t>(*axis));
  op.SetDims(0, dims);
}

void TopK(Op& op) {
  op.SetType(1, pb::TensorProto::INT64);
  Dims dims = op.InputDims(0);
  if (!dims) return;
  const auto axis = Axis(op.Int("axis", -1), dims->size());
  const auto k = op.InputIntegers(1);
  if (!axis) return;
  (*dims)[*axis] = op.Has("k") ? op.Int("k", 0) : k && k->size() == 1 ? k->front() : kUnknownDim;
  op.SetDims(0, dims);
  op.SetDims(1, dims);
}

// [N, C, H, W] with blocks of b x b: depth to space when `outward`.
void Blocks(Op& op, bool outward) {
  const Dims data = op.InputDims(0);
  const int64_t b = op.Int("blocksize", 0);
  if (!data || data->size() != 4 || b < 1 || b > kMaxAttribute) return;
  if (std::ranges::any_of(*data, [](int64_t dim) { return !Known(dim); })) return;
  const auto& d = *data;
  constexpr int64_t kLargest = int64_t{1} << 15;  // keeps the products below in 63 bits
  if (b > kLargest) return;
  if (outward) return op.SetDims(0, Sizes{d[0], d[1] / (b * b), d[2] * b, d[3] * b});
  op.SetDims(0, Sizes{d[0], Product({d[1], b * b}).value_or(kUnknownDim), d[2] / b, d[3] / b});
}
void DepthToSpace(Op& op) { Blocks(op, true); }
void SpaceToDepth(Op& op) { Blocks(op, false); }

}  // namespace

void AddResizeRules(RuleTable& table) {
  table.Add(Slice, {"Slice"});
  table.Add(Split, {"Split"});
  table.Add(Pad, {"Pad"});
  table.Add(Expand, {"Expand"});
  table.Add(Tile, {"Tile"});
  table.Add(Resize, {"Resize", "Upsample"});
  table.Add(Reduce, {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
                     "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"});
  table.Add(ArgReduce, {"ArgMax", "ArgMin"});
  table.Add(TopK, {"TopK"});
  table.Add(DepthToSpace, {"DepthToSpace"});
  table.Add(SpaceToDepth, {"SpaceToDepth"});
}

}  // namespace weir::onnx
