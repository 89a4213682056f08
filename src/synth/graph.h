// An ONNX graph written node by node, and the weights it starts from.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/seed.h"

namespace weir::synth {

namespace pb = ::onnx;

// A value inside the graph: [N, channels, height, width], or [N, channels] once pooled.
struct Activation {
  std::string value;
  int channels = 0;
};

struct ConvolutionSpec {
  int channels = 0;  // of the output
  int kernel = 1;
  int stride = 1;
  // The output's variance to the mean square of the input, for an input of any mean: 2 before a ReLU (He et
  // al. 2015), 1 where nothing follows, less for a small branch.
  double gain = 2;
};

// Writes opset 13, IR 8, weights as raw bytes; the first dimension of inputs and outputs is the symbolic "N".
// Names of nodes are names of values. One thread at a time.
class GraphWriter {
 public:
  // Weights come from streams of `seed` by the node's name, so that they do not depend on the order of
  // writing.
  GraphWriter(std::string_view name, Seed seed);

  // `free` dimensions (-1) after the first get the names "D1", "D2", ...
  void Input(const std::string& name, std::span<const int64_t> shape);
  void Output(const std::string& name, std::span<const int64_t> shape);
  void ClearOutputs();

  Activation Convolution(const std::string& name, const Activation& x, const ConvolutionSpec& spec);
  Activation Relu(const std::string& name, const Activation& x);
  Activation MaxPool(const std::string& name, const Activation& x, int kernel, int stride);
  Activation Add(const std::string& name, const Activation& a, const Activation& b);
  // The mean over height and width: [N, channels].
  Activation GlobalAverage(const std::string& name, const Activation& x);
  Activation Identity(const std::string& name, const Activation& x);
  // x * weights' + bias; `weights` is [outputs, x.channels], row-major.
  Activation Linear(const std::string& name, const Activation& x, std::span<const float> weights,
                    std::span<const float> bias);

  const pb::ModelProto& model() const { return model_; }

 private:
  pb::NodeProto& Node(std::string_view op, const std::string& name, const std::vector<std::string>& inputs);
  std::string Constant(const std::string& name, std::span<const int64_t> shape,
                       std::span<const float> values);

  const Seed seed_;
  pb::ModelProto model_;
};

}  // namespace weir::synth
