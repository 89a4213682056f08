#include "synth/graph.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace weir::synth {
namespace {

void Describe(pb::ValueInfoProto& value, const std::string& name, std::span<const int64_t> shape) {
  value.set_name(name);
  pb::TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(pb::TensorProto::FLOAT);
  for (size_t i = 0; i < shape.size(); ++i) {
    pb::TensorShapeProto::Dimension& dimension = *type.mutable_shape()->add_dim();
    if (i == 0) {
      dimension.set_dim_param("N");
    } else if (shape[i] < 0) {
      dimension.set_dim_param("D" + std::to_string(i));
    } else {
      dimension.set_dim_value(shape[i]);
    }
  }
}

void SetInteger(pb::NodeProto& node, const char* name, int64_t value) {
  pb::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(pb::AttributeProto::INT);
  attribute.set_i(value);
}

void SetIntegers(pb::NodeProto& node, const char* name, std::initializer_list<int64_t> values) {
  pb::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(pb::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

void SetWindow(pb::NodeProto& node, int kernel, int stride) {
  const int pad = kernel / 2;
  SetIntegers(node, "kernel_shape", {kernel, kernel});
  SetIntegers(node, "strides", {stride, stride});
  SetIntegers(node, "pads", {pad, pad, pad, pad});
}

// Filters of variance `gain` / size whose weights sum to zero: what all inputs share (after a ReLU, a large
// part of them) is taken away, and what differs between pictures is kept.
std::vector<float> ZeroMeanFilters(Random random, int filters, int size, double gain) {
  const double spread = std::sqrt(3 * gain / size);  // of an even spread over [-spread, spread]
  std::vector<float> weights(static_cast<size_t>(filters) * size);
  for (float& weight : weights) weight = static_cast<float>(random.Uniform(-spread, spread));
  for (auto filter = weights.begin(); filter != weights.end(); filter += size) {
    const double mean = std::accumulate(filter, filter + size, 0.0) / size;
    std::for_each(filter, filter + size, [&](float& weight) { weight -= static_cast<float>(mean); });
  }
  return weights;
}

}  // namespace

GraphWriter::GraphWriter(std::string_view name, Seed seed) : seed_(seed) {
  model_.set_ir_version(8);
  model_.set_producer_name("weir");
  model_.add_opset_import()->set_version(13);
  model_.mutable_graph()->set_name(std::string(name));
}

void GraphWriter::Input(const std::string& name, std::span<const int64_t> shape) {
  Describe(*model_.mutable_graph()->add_input(), name, shape);
}

void GraphWriter::Output(const std::string& name, std::span<const int64_t> shape) {
  Describe(*model_.mutable_graph()->add_output(), name, shape);
}

void GraphWriter::ClearOutputs() { model_.mutable_graph()->clear_output(); }

pb::NodeProto& GraphWriter::Node(std::string_view op, const std::string& name,
                                 const std::vector<std::string>& inputs) {
  pb::NodeProto& node = *model_.mutable_graph()->add_node();
  node.set_op_type(std::string(op));
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(name);
  return node;
}

std::string GraphWriter::Constant(const std::string& name, std::span<const int64_t> shape,
                                  std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");
  pb::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(pb::TensorProto::FLOAT);
  for (const int64_t size : shape) tensor.add_dims(size);
  tensor.set_raw_data(values.data(), values.size_bytes());
  return name;
}

Activation GraphWriter::Convolution(const std::string& name, const Activation& x,
                                    const ConvolutionSpec& spec) {
  const int size = x.channels * spec.kernel * spec.kernel;
  const std::vector<float> weights =
      ZeroMeanFilters(seed_.Stream(name).MakeRandom(), spec.channels, size, spec.gain);
  const std::vector<float> bias(spec.channels, 0.0F);
  const std::string weight_name = Constant(
      name + ".weight", std::array<int64_t, 4>{spec.channels, x.channels, spec.kernel, spec.kernel}, weights);
  const std::string bias_name = Constant(name + ".bias", std::array<int64_t, 1>{spec.channels}, bias);
  SetWindow(Node("Conv", name, {x.value, weight_name, bias_name}), spec.kernel, spec.stride);
  return {name, spec.channels};
}

Activation GraphWriter::Relu(const std::string& name, const Activation& x) {
  Node("Relu", name, {x.value});
  return {name, x.channels};
}

Activation GraphWriter::MaxPool(const std::string& name, const Activation& x, int kernel, int stride) {
  SetWindow(Node("MaxPool", name, {x.value}), kernel, stride);
  return {name, x.channels};
}

Activation GraphWriter::Add(const std::string& name, const Activation& a, const Activation& b) {
  CHECK(a.channels == b.channels);
  Node("Add", name, {a.value, b.value});
  return {name, a.channels};
}

Activation GraphWriter::GlobalAverage(const std::string& name, const Activation& x) {
  const std::string pooled = name + ".pool";
  Node("GlobalAveragePool", pooled, {x.value});
  SetInteger(Node("Flatten", name, {pooled}), "axis", 1);
  return {name, x.channels};
}

Activation GraphWriter::Identity(const std::string& name, const Activation& x) {
  Node("Identity", name, {x.value});
  return {name, x.channels};
}

Activation GraphWriter::Linear(const std::string& name, const Activation& x, std::span<const float> weights,
                               std::span<const float> bias) {
  const auto outputs = static_cast<int64_t>(bias.size());
  CHECK(std::ssize(weights) == outputs * x.channels);
  const std::string weight_name =
      Constant(name + ".weight", std::array<int64_t, 2>{outputs, x.channels}, weights);
  const std::string bias_name = Constant(name + ".bias", std::array<int64_t, 1>{outputs}, bias);
  SetInteger(Node("Gemm", name, {x.value, weight_name, bias_name}), "transB", 1);
  return {name, static_cast<int>(outputs)};
}

}  // namespace weir::synth
