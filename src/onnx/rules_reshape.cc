#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "onnx/rules.h"

namespace weir::onnx {
namespace {

constexpr double kUnknownNumber = std::numeric_limits<double>::quiet_NaN();

void Flatten(Op& op) {
  const Dims data = op.InputDims(0);
  op.SetSameStorage(0);
  if (!data) return;
  const int64_t axis = op.Int("axis", 1);
  const int64_t rank = static_cast<int64_t>(data->size());
  if (axis < -rank || axis > rank) return;
  const auto middle = data->begin() + (axis < 0 ? axis + rank : axis);
  op.SetDims(0, Sizes{Product({data->begin(), middle}).value_or(kUnknownDim),
                      Product({middle, data->end()}).value_or(kUnknownDim)});
}

void Reshape(Op& op) {
  op.SetSameStorage(0);
  const Dims data = op.InputDims(0);
  Content target = op.InputContent(1);
  if (const auto shape = op.Ints("shape"); shape && !target)
    target.emplace(shape->begin(), shape->end());  // opset 1
  if (!target) {
    const Dims rank = op.InputDims(1);
    if (rank && rank->size() == 1 && Known(rank->front()) && rank->front() <= int64_t{kMaxRank}) {
      op.SetDims(0, Sizes(static_cast<size_t>(rank->front()), kUnknownDim));
    }
    return;
  }
  if (target->size() > kMaxRank) return;
  Sizes dims;
  for (size_t i = 0; i < target->size(); ++i) {
    const int64_t wanted = ToInteger((*target)[i]).value_or(kUnknownDim);
    const bool copied = wanted == 0 && op.Int("allowzero", 0) == 0;
    dims.push_back(!copied ? wanted : data && i < data->size() ? (*data)[i] : kUnknownDim);
  }
  // One dimension left open is what remains of the elements.
  const auto open = std::ranges::find_if_not(dims, Known);
  const int64_t elements = data ? Product(*data).value_or(kUnknownDim) : kUnknownDim;
  if (open != dims.end() && std::ranges::count_if(dims, Known) == std::ssize(dims) - 1 && Known(elements)) {
    *open = 1;
    const int64_t rest = Product(dims).value_or(0);
    *open = rest > 0 && elements % rest == 0 ? elements / rest : kUnknownDim;
  }
  op.SetDims(0, dims);
}

void Transpose(Op& op) {
  op.SetSameStorage(0);
  const Dims data = op.InputDims(0);
  if (!data) return;
  Sizes order(data->size());
  std::iota(order.rbegin(), order.rend(), 0);
  if (const auto perm = op.Ints("perm")) {
    if (perm->size() != data->size()) return;
    order = *perm;
  }
  Sizes dims;
  for (const int64_t from : order) {
    if (from < 0 || from >= std::ssize(*data)) return;
    dims.push_back((*data)[static_cast<size_t>(from)]);
  }
  op.SetDims(0, dims);
}

void ConcatOf(Op& op, size_t first, size_t step) {
  Dims dims = op.InputDims(first);
  if (!dims) return;
  const auto axis = Axis(op.Int("axis", 1), dims->size());
  if (!axis) return;
  for (size_t i = first + step; i < op.inputs(); i += step) {
    const Dims next = op.InputDims(i);
    if (!next || next->size() != dims->size()) return;
    for (size_t d = 0; d < dims->size(); ++d) {
      int64_t& dim = (*dims)[d];
      if (d != *axis) {
        if (!Known(dim)) dim = (*next)[d];
      } else if (!Known(dim) || !Known((*next)[d]) || __builtin_add_overflow(dim, (*next)[d], &dim)) {
        dim = kUnknownDim;
      }
    }
  }
  op.SetDims(0, dims);
}
void Concat(Op& op) { ConcatOf(op, 0, 1); }
void QuantizedConcat(Op& op) {
  ConcatOf(op, 2, 3);
}  // scale, zero point, then (value, scale, zero point) each

void Squeeze(Op& op) {
  op.SetSameStorage(0);
  const Dims data = op.InputDims(0);
  const auto axes = AxesOf(op);
  if (!data || !axes) return;
  const auto marked = Marked(*axes, data->size());
  if (!marked) return;
  Sizes dims;
  for (size_t i = 0; i < data->size(); ++i) {
    if (axes->empty() && !Known((*data)[i])) return;
    if (axes->empty() ? (*data)[i] != 1 : !(*marked)[i]) dims.push_back((*data)[i]);
  }
  op.SetDims(0, dims);
}

void Unsqueeze(Op& op) {
  op.SetSameStorage(0);
  const Dims data = op.InputDims(0);
  const auto axes = AxesOf(op);
  if (!data || !axes || axes->size() > kMaxRank) return;
  const auto marked = Marked(*axes, data->size() + axes->size());
  if (!marked || std::ranges::count(*marked, true) != std::ssize(*axes)) return;
  Sizes dims;
  auto next = data->begin();
  for (const bool inserted : *marked) dims.push_back(inserted ? 1 : *next++);
  op.SetDims(0, dims);
}

void Shape(Op& op) {
  op.SetType(0, pb::TensorProto::INT64);
  const Dims data = op.InputDims(0);
  if (!data) return op.SetDims(0, Sizes{kUnknownDim});
  const int64_t rank = static_cast<int64_t>(data->size());
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t start = clamp(op.Int("start", 0)), end = std::max(start, clamp(op.Int("end", rank)));
  std::vector<double> content;
  for (int64_t i = start; i < end; ++i) {
    const int64_t dim = (*data)[static_cast<size_t>(i)];
    content.push_back(Known(dim) ? static_cast<double>(dim) : kUnknownNumber);
  }
  op.SetDims(0, Sizes{std::ssize(content)});
  op.SetContent(0, std::move(content));
}

void Size(Op& op) {
  op.SetType(0, pb::TensorProto::INT64);
  op.SetDims(0, Sizes{});
  const Dims data = op.InputDims(0);
  if (const auto elements = data ? Product(*data) : std::nullopt)
    op.SetContent(0, std::vector{static_cast<double>(*elements)});
}

void Gather(Op& op) {
  const Dims data = op.InputDims(0), indices = op.InputDims(1);
  if (!data || !indices) return;
  const auto axis = Axis(op.Int("axis", 0), data->size());
  if (!axis) return;
  Sizes dims(data->begin(), data->begin() + static_cast<ptrdiff_t>(*axis));
  dims.insert(dims.end(), indices->begin(), indices->end());
  dims.insert(dims.end(), data->begin() + static_cast<ptrdiff_t>(*axis) + 1, data->end());
  op.SetDims(0, dims);
}

void GatherElements(Op& op) { op.SetDims(0, op.InputDims(1)); }

void GatherNd(Op& op) {
  const Dims data = op.InputDims(0), indices = op.InputDims(1);
  const int64_t batch = op.Int("batch_dims", 0);
  if (!data || !indices || indices->empty() || !Known(indices->back())) return;
  if (batch < 0 || batch > kMaxAttribute || indices->back() > kMaxAttribute) return;
  if (batch + indices->back() > std::ssize(*data)) return;
  Sizes dims(indices->begin(), indices->end() - 1);
  dims.insert(dims.end(), data->begin() + batch + indices->back(), data->end());
  op.SetDims(0, dims);
}

}  // namespace

void AddReshapeRules(RuleTable& table) {
  table.Add(Flatten, {"Flatten"});
  table.Add(Reshape, {"Reshape"});
  table.Add(Transpose, {"Transpose"});
  table.Add(Concat, {"Concat"});
  table.Add(QuantizedConcat, {"QLinearConcat"});
  table.Add(Squeeze, {"Squeeze"});
  table.Add(Unsqueeze, {"Unsqueeze"});
  table.Add(Shape, {"Shape"});
  table.Add(Size, {"Size"});
  table.Add(Gather, {"Gather"});
  table.Add(GatherElements, {"GatherElements"});
  table.Add(GatherNd, {"GatherND"});
}

}  // namespace weir::onnx
