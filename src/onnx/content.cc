#include "onnx/content.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::onnx {
namespace {

using Numbers = std::vector<double>;

bool IsInteger(int32_t type) {
  return type == pb::TensorProto::INT64 || type == pb::TensorProto::INT32 ||
         type == pb::TensorProto::UINT64 || type == pb::TensorProto::UINT32;
}

// First element that Slice takes; its length says how many follow.
int64_t SliceStart(int64_t size, int64_t start, int64_t step) {
  if (start < 0) start += size;
  return step > 0 ? std::clamp<int64_t>(start, 0, size) : std::clamp<int64_t>(start, -1, size - 1);
}

using Binary = double (*)(double, double, bool integers);

Binary BinaryOf(std::string_view type) {
  static const std::unordered_map<std::string_view, Binary> operators = {
      {"Add", [](double a, double b, bool) { return a + b; }},
      {"Sub", [](double a, double b, bool) { return a - b; }},
      {"Mul", [](double a, double b, bool) { return a * b; }},
      {"Div",
       [](double a, double b, bool integers) {
         return b == 0 ? std::nan("") : integers ? std::trunc(a / b) : a / b;
       }},
      {"Mod", [](double a, double b, bool) { return b == 0 ? std::nan("") : a - b * std::floor(a / b); }},
      {"Min", [](double a, double b,
                 bool) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b); }},
      {"Max", [](double a, double b,
                 bool) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }},
      {"Equal", [](double a, double b,
                   bool) { return std::isnan(a) || std::isnan(b) ? std::nan("") : (a == b ? 1.0 : 0.0); }},
  };
  const auto found = operators.find(type);
  return found == operators.end() ? nullptr : found->second;
}

Content Elementwise(const Op& op, Binary apply) {
  const Content a = op.InputContent(0), b = op.InputContent(1);
  if (!a || !b || op.inputs() != 2 || a->empty() || b->empty()) return std::nullopt;
  const size_t size = std::max(a->size(), b->size());
  if ((a->size() != size && a->size() != 1) || (b->size() != size && b->size() != 1)) return std::nullopt;
  const bool integers = IsInteger(op.Input(0)->type);
  Numbers result(size);
  for (size_t i = 0; i < size; ++i) {
    result[i] = apply((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i], integers);
  }
  return result;
}

Content Select(const Op& op) {
  const Content condition = op.InputContent(0), yes = op.InputContent(1), no = op.InputContent(2);
  if (!condition || !yes || !no || condition->empty() || yes->empty() || no->empty()) return std::nullopt;
  const size_t size = std::max({condition->size(), yes->size(), no->size()});
  Numbers result(size);
  for (size_t i = 0; i < size; ++i) {
    const auto at = [&](const Numbers& numbers) {
      return numbers.size() == 1 ? 0 : std::min(i, numbers.size() - 1);
    };
    const double which = (*condition)[at(*condition)];
    result[i] = std::isnan(which) ? std::nan("") : which != 0 ? (*yes)[at(*yes)] : (*no)[at(*no)];
  }
  return result;
}

Content Taken(const Op& op) {
  const Content data = op.InputContent(0), indices = op.InputContent(1);
  const Dims dims = op.InputDims(0);
  if (!data || !indices || !dims || dims->size() != 1) return std::nullopt;
  Numbers result;
  for (const double number : *indices) {
    const auto index = ToInteger(number);
    const auto at = index ? Axis(*index, data->size()) : std::nullopt;
    if (!at) return std::nullopt;
    result.push_back((*data)[*at]);
  }
  return result;
}

Content Joined(const Op& op) {
  Numbers result;
  for (size_t i = 0; i < op.inputs(); ++i) {
    const Content next = op.InputContent(i);
    if (!next) return std::nullopt;
    result.insert(result.end(), next->begin(), next->end());
  }
  return result;
}

Content Sliced(const Op& op) {
  const Content data = op.InputContent(0);
  auto starts = op.Ints("starts"), ends = op.Ints("ends");
  if (!starts) {
    starts = op.InputIntegers(1);
    ends = op.InputIntegers(2);
  }
  const auto steps = op.HasInput(4) ? op.InputIntegers(4) : std::vector<int64_t>{1};
  if (!data || !starts || !ends || !steps || starts->size() != 1 || ends->size() != 1 || steps->size() != 1)
    return std::nullopt;
  const int64_t size = std::ssize(*data), step = steps->front();
  if (step == 0 || step > size || step < -size) return std::nullopt;
  const int64_t count = SliceLength(size, starts->front(), ends->front(), step);
  Numbers result;
  for (int64_t i = 0, at = SliceStart(size, starts->front(), step); i < count; ++i, at += step) {
    result.push_back((*data)[static_cast<size_t>(at)]);
  }
  return result;
}

Content Mapped(const Op& op, double (*apply)(double)) {
  Content content = op.InputContent(0);
  if (content) std::ranges::transform(*content, content->begin(), apply);
  return content;
}

Content ContentOf(const Op& op) {
  const std::string_view type = op.type();
  if (const Binary binary = BinaryOf(type)) return Elementwise(op, binary);
  if (type == "Identity" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze")
    return op.InputContent(0);
  if (type == "Cast") {
    const bool truncates = IsInteger(static_cast<int32_t>(op.Int("to", 0)));
    return Mapped(op, truncates ? [](double x) { return std::trunc(x); } : [](double x) { return x; });
  }
  if (type == "Floor") return Mapped(op, [](double x) { return std::floor(x); });
  if (type == "Ceil") return Mapped(op, [](double x) { return std::ceil(x); });
  if (type == "Neg") return Mapped(op, [](double x) { return -x; });
  if (type == "Gather") return Taken(op);
  if (type == "Concat") return Joined(op);
  if (type == "Slice") return Sliced(op);
  if (type == "Where") return Select(op);
  if (type == "ReduceProd") {
    const Content content = op.InputContent(0);
    if (content) return Numbers{std::accumulate(content->begin(), content->end(), 1.0, std::multiplies<>())};
  }
  return std::nullopt;
}

}  // namespace

int64_t SliceLength(int64_t size, int64_t start, int64_t end, int64_t step) {
  const int64_t from = SliceStart(size, start, step);
  if (end < 0) end += size;
  end = step > 0 ? std::clamp<int64_t>(end, 0, size) : std::clamp<int64_t>(end, -1, size - 1);
  const int64_t span = step > 0 ? end - from : from - end;
  const int64_t stride = step > 0 ? step : -step;
  return span <= 0 ? 0 : (span - 1) / stride + 1;
}

void FollowContent(Op& op) {
  Content content = ContentOf(op);
  const Dims dims = op.OutputDims(0);
  if (!content || !dims || dims->size() > 1) return;
  const bool fits = dims->empty() ? content->size() == 1 : dims->front() == std::ssize(*content);
  if (fits) op.SetContent(0, std::move(content));
}

}  // namespace weir::onnx
