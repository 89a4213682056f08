// The work and the weights of a Net whose shapes are known.
#pragma once

#include <cstdint>
#include <optional>

#include "onnx/net.h"

namespace weir::onnx {

// Convolution, dense or recurrent: an operator that has weights. A product of two data values is none.
bool IsWeightLayer(Net& net, const Node& node);

// A convolution in which every output channel sees one input channel only.
bool IsDepthwise(Net& net, const Node& node);

struct Work {
  std::optional<int64_t> parameters;
  std::optional<int64_t> multiply_adds;
  std::optional<int64_t> activations;
};

// Sums over the net, for the batch its shapes were propagated with. graph.h defines the figures.
Work WorkOf(Net& net);

}  // namespace weir::onnx
