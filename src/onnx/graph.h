// Facts of an ONNX file: its inputs and outputs, the work in it, and whether it is safe to load.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::onnx {

struct TensorFacts {
  std::string name;
  std::string datatype;  // the Open Inference Protocol's name ("FP32", "UINT8", ...); "SEQUENCE", "MAP", ...
                         // for no tensor
  std::optional<std::vector<int64_t>> shape;  // -1: a free dimension; absent: not even the rank is known
  std::string not_batchable;                  // why its first dimension is not the batch; empty: it is
};

// Figures are for one item: a free first dimension counts as 1, and where all inputs and outputs have it
// fixed to N > 1 the sums are divided by N. A figure that the graph does not settle (shapes depend on the
// data, other free dimensions, operators not known here, work inside loops and branches) is absent, never
// guessed.
struct GraphFacts {
  std::string path;  // of the file itself, links followed; where it has external data: beside which they lie
  std::vector<TensorFacts> inputs;  // without those that an initializer fills
  // Inputs that an initializer fills, and a call may replace: none before IR version 4, where they are
  // constant.
  std::vector<TensorFacts> filled_inputs;
  std::vector<TensorFacts> outputs;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  // version by domain; "" is the domain of the standard
  std::string producer;                   // the tool that wrote the file, with its version
  int64_t nodes = 0;                      // of the main graph
  uint64_t file_bytes = 0;
  uint64_t external_bytes = 0;  // of the files beside it that hold its tensors

  // Elements of the constant values that meet data, each once: weights and biases as they take part, however
  // they are stored (tables, quantized). Shapes, axes, scales and zero points, single numbers, masks, and the
  // running mean and variance of a batch normalization are none; so a network has the count its authors
  // publish.
  std::optional<int64_t> parameters;
  std::optional<int64_t>
      multiply_adds_per_item;  // of convolutions, matrix products and recurrent layers; the bias not counted
  std::optional<int64_t> activations_per_item;  // output elements of convolution and dense layers
  std::optional<int64_t> depth;  // weight layers (convolution, dense, recurrent) on the longest path
  // Repeated blocks; structure.h has the definition. 16 for ResNet-50, 17 for MobileNet v2, 58 for
  // DenseNet-121.
  std::optional<int64_t> inner_modules;

  std::string not_batchable;  // why it takes no batch of another size; empty: it does
  std::optional<int64_t>
      fixed_batch;  // the first dimension, where every input has it fixed to the same number

  bool batchable() const { return not_batchable.empty(); }
};

// Reads the file, refuses what is not safe to hand to an engine, and gives its facts. `path` itself may be a
// link: the user named it. kNotFound, kIo; kCorrupt for what is no ONNX file or contradicts itself;
// kInvalidArgument for external data that is absolute, leaves the model's folder (by a link that does not
// lead below one of `roots` too), is no regular file or ends before its tensor does, and for operators of
// custom libraries; kUnsupported above 2 GiB. Reads the model file once; an engine that opens it later relies
// on nobody changing it.
Result<GraphFacts> ReadGraph(const std::string& path, const std::vector<std::string>& roots = {});

// The same for a file held in memory; `folder` is where external data is looked for, empty where there may be
// none.
Result<GraphFacts> ParseGraph(std::string_view bytes, const std::string& folder);

}  // namespace weir::onnx
