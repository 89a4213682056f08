// One node of a Net as its shape rule sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/net.h"

namespace weir::onnx {

// Attributes outside these are taken as not known.
constexpr int64_t kMaxAttribute = int64_t{1} << 31;
constexpr size_t kMaxRank = 64;

using Content = std::optional<std::vector<double>>;

// A number of a Content as an integer: saturates; absent for NaN.
std::optional<int64_t> ToInteger(double number);

// Borrows the net. Inputs that are left out, or have no known value, answer with "not known".
class Op {
 public:
  Op(Net& net, const Node& node) : net_(net), node_(node) {}

  const std::string& type() const { return node_.proto->op_type(); }
  size_t inputs() const { return node_.inputs.size(); }
  size_t outputs() const { return node_.outputs.size(); }
  bool HasInput(size_t i) const { return Input(i) != nullptr; }
  const Value* Input(size_t i) const;
  Dims InputDims(size_t i) const;
  Dims OutputDims(size_t i) const;
  Content InputContent(size_t i) const;
  std::optional<std::vector<int64_t>> InputIntegers(size_t i) const;  // content whose every number is known
  bool IsConstant(size_t i) const;

  bool Has(std::string_view name) const { return net_.Attribute(node_, name) != nullptr; }
  int64_t Int(std::string_view name, int64_t fallback) const;
  std::optional<std::vector<int64_t>> Ints(std::string_view name) const;
  std::optional<std::vector<double>> Floats(std::string_view name) const;
  std::string Text(std::string_view name, std::string_view fallback) const;
  const pb::TensorProto* Tensor(std::string_view name) const;

  // Dimensions beyond the limits above become "not known".
  void SetDims(size_t output, Dims dims);
  void SetType(size_t output, int32_t type);
  void SetContent(size_t output, Content content);
  // The output has the elements of input 0, in another form.
  void SetSameStorage(size_t output);

  const Node& node() const { return node_; }

 private:
  Value* Output(size_t i) const;

  Net& net_;
  const Node& node_;
};

// `axis` of a tensor of `rank` dimensions, counted from the front; absent when it lies outside.
std::optional<size_t> Axis(int64_t axis, size_t rank);

}  // namespace weir::onnx
