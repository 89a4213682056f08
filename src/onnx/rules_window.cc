#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "onnx/rules.h"

namespace weir::onnx {
namespace {

// Attributes of a window over the last `spatial` dimensions.
struct Window {
  Sizes kernel, strides, dilations, pads;
  std::string auto_pad;
};

// A list of `size` numbers in [low, 2^31]; absent when it is anything else.
std::optional<Sizes> WindowList(const Op& op, std::string_view name, size_t size, int64_t fallback,
                                int64_t low) {
  const auto list = op.Ints(name);
  if (!list || list->empty()) return Sizes(size, fallback);
  const bool fits = list->size() == size &&
                    std::ranges::all_of(*list, [&](int64_t x) { return x >= low && x <= kMaxAttribute; });
  return fits ? list : std::nullopt;
}

std::optional<Window> ReadWindow(const Op& op, Sizes kernel) {
  const size_t spatial = kernel.size();
  const auto strides = WindowList(op, "strides", spatial, 1, 1);
  const auto dilations = WindowList(op, "dilations", spatial, 1, 1);
  const auto pads = WindowList(op, "pads", 2 * spatial, 0, 0);
  const bool fits = std::ranges::all_of(kernel, [](int64_t k) { return k >= 1 && k <= kMaxAttribute; });
  if (!strides || !dilations || !pads || !fits) return std::nullopt;
  return Window{std::move(kernel), *strides, *dilations, *pads, op.Text("auto_pad", "NOTSET")};
}

int64_t WindowOutput(const Window& window, size_t i, int64_t input, bool ceil_mode) {
  if (!Known(input)) return kUnknownDim;
  const int64_t stride = window.strides[i];
  if (window.auto_pad.starts_with("SAME")) return (input + stride - 1) / stride;
  const bool padded = window.auto_pad != "VALID";
  const int64_t begin = padded ? window.pads[i] : 0;
  const int64_t end = padded ? window.pads[i + window.kernel.size()] : 0;
  const int64_t span = (window.kernel[i] - 1) * window.dilations[i] + 1;
  const int64_t room = input + begin + end - span;
  if (room < 0) return kUnknownDim;
  int64_t output = (ceil_mode ? room + stride - 1 : room) / stride + 1;
  if (ceil_mode && (output - 1) * stride >= input + begin) --output;  // the last window must begin inside
  return output;
}

void ConvolutionOf(Op& op, size_t weight_input) {
  const Dims data = op.InputDims(0), weight = op.InputDims(weight_input);
  if (!data || !weight || data->size() < 3 || weight->size() != data->size()) return;
  const auto window = ReadWindow(op, Sizes(weight->begin() + 2, weight->end()));
  if (!window) return;
  Sizes dims{data->front(), weight->front()};
  for (size_t i = 0; i < window->kernel.size(); ++i)
    dims.push_back(WindowOutput(*window, i, (*data)[i + 2], false));
  op.SetDims(0, dims);
}

void Convolution(Op& op) { ConvolutionOf(op, 1); }

void QuantizedConvolution(Op& op) {
  ConvolutionOf(op, 3);
  if (const Value* zero_point = op.Input(7)) op.SetType(0, zero_point->type);
}

void IntegerConvolution(Op& op) {
  ConvolutionOf(op, 1);
  op.SetType(0, pb::TensorProto::INT32);
}

void TransposedConvolution(Op& op) {
  const Dims data = op.InputDims(0), weight = op.InputDims(1);
  if (!data || !weight || data->size() < 3 || weight->size() != data->size()) return;
  const auto window = ReadWindow(op, Sizes(weight->begin() + 2, weight->end()));
  const size_t spatial = data->size() - 2;
  const auto extra = WindowList(op, "output_padding", spatial, 0, 0);
  const auto wanted = op.Ints("output_shape");
  const int64_t group = op.Int("group", 1);
  if (!window || !extra || group < 1 || group > kMaxAttribute || !Known((*weight)[1])) return;
  if (wanted && wanted->size() < spatial) return;
  int64_t channels = 0;
  if (__builtin_mul_overflow((*weight)[1], group, &channels)) return;
  Sizes dims{data->front(), channels};
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t input = (*data)[i + 2], stride = window->strides[i];
    const int64_t span = (window->kernel[i] - 1) * window->dilations[i] + 1;
    __int128 output = static_cast<__int128>(input - 1) * stride + (*extra)[i] + span;
    if (window->auto_pad.starts_with("SAME")) output = static_cast<__int128>(input) * stride;
    if (window->auto_pad == "NOTSET") output -= window->pads[i] + window->pads[i + spatial];
    if (wanted) output = (*wanted)[wanted->size() - spatial + i];
    dims.push_back(Known(input) && output >= 0 && output <= kMaxDim ? static_cast<int64_t>(output)
                                                                    : kUnknownDim);
  }
  op.SetDims(0, dims);
}

void Pool(Op& op) {
  const Dims data = op.InputDims(0);
  const auto kernel = op.Ints("kernel_shape");
  if (!data || !kernel || data->size() != kernel->size() + 2 || op.Int("channels_last", 0) != 0) return;
  const auto window = ReadWindow(op, *kernel);
  if (!window) return;
  Sizes dims{(*data)[0], (*data)[1]};
  for (size_t i = 0; i < kernel->size(); ++i) {
    dims.push_back(WindowOutput(*window, i, (*data)[i + 2], op.Int("ceil_mode", 0) != 0));
  }
  op.SetDims(0, dims);
  op.SetDims(1, dims);
}

void GlobalPool(Op& op) {
  Dims dims = op.InputDims(0);
  if (!dims || dims->size() < 2 || op.Int("channels_last", 0) != 0) return;
  std::fill(dims->begin() + 2, dims->end(), 1);
  op.SetDims(0, dims);
}

}  // namespace

void AddWindowRules(RuleTable& table) {
  table.Add(Convolution, {"Conv", "FusedConv"});
  table.Add(QuantizedConvolution, {"QLinearConv"});
  table.Add(IntegerConvolution, {"ConvInteger"});
  table.Add(TransposedConvolution, {"ConvTranspose"});
  table.Add(Pool, {"AveragePool", "LpPool", "MaxPool", "QLinearAveragePool"});
  table.Add(GlobalPool, {"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "QLinearGlobalAveragePool"});
}

}  // namespace weir::onnx
