#include "onnx/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "onnx/load.h"
#include "onnx/net.h"
#include "onnx/safety.h"
#include "onnx/shapes.h"
#include "onnx/structure.h"
#include "onnx/work.h"

namespace weir::onnx {
namespace {

std::string DatatypeName(int32_t type) {
  switch (type) {
    case pb::TensorProto::FLOAT:
      return "FP32";
    case pb::TensorProto::UINT8:
      return "UINT8";
    case pb::TensorProto::INT8:
      return "INT8";
    case pb::TensorProto::UINT16:
      return "UINT16";
    case pb::TensorProto::INT16:
      return "INT16";
    case pb::TensorProto::INT32:
      return "INT32";
    case pb::TensorProto::INT64:
      return "INT64";
    case pb::TensorProto::STRING:
      return "BYTES";
    case pb::TensorProto::BOOL:
      return "BOOL";
    case pb::TensorProto::FLOAT16:
      return "FP16";
    case pb::TensorProto::DOUBLE:
      return "FP64";
    case pb::TensorProto::UINT32:
      return "UINT32";
    case pb::TensorProto::UINT64:
      return "UINT64";
    case pb::TensorProto::BFLOAT16:
      return "BF16";
    case pb::TensorProto::COMPLEX64:
      return "COMPLEX64";
    case pb::TensorProto::COMPLEX128:
      return "COMPLEX128";
    default:
      return fmt::format("ONNX-TYPE-{}", type);
  }
}

TensorFacts FactsOf(const pb::ValueInfoProto& info) {
  TensorFacts facts{.name = info.name()};
  const pb::TypeProto& type = info.type();
  switch (type.value_case()) {
    case pb::TypeProto::kTensorType:
      facts.datatype = DatatypeName(type.tensor_type().elem_type());
      break;
    case pb::TypeProto::kSequenceType:
      facts.datatype = "SEQUENCE";
      break;
    case pb::TypeProto::kMapType:
      facts.datatype = "MAP";
      break;
    case pb::TypeProto::kOptionalType:
      facts.datatype = "OPTIONAL";
      break;
    case pb::TypeProto::kSparseTensorType:
      facts.datatype = "SPARSE";
      break;
    default:
      facts.datatype = "UNKNOWN";
      break;
  }
  if (type.tensor_type().has_shape()) {
    facts.shape.emplace();
    for (const auto& dim : type.tensor_type().shape().dim()) {
      facts.shape->push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : kUnknownDim);
    }
  }
  return facts;
}

// Shapes that the file does not declare for its outputs, by propagation at two batch sizes: what differs is
// free.
void FillOutputShapes(const Net& net, GraphFacts& facts) {
  const bool all_known =
      std::ranges::all_of(facts.outputs, [](const TensorFacts& t) { return t.shape.has_value(); });
  if (all_known) return;
  Net once = net, twice = net;
  PropagateShapes(once, 1);
  PropagateShapes(twice, 2);
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    TensorFacts& output = facts.outputs[i];
    const int id = net.outputs[i];
    if (output.shape || id < 0) continue;
    const Dims &a = once.values[id].dims, &b = twice.values[id].dims;
    if (!a || !b || a->size() != b->size()) continue;
    output.shape = *a;
    for (size_t d = 0; d < a->size(); ++d) {
      if ((*a)[d] != (*b)[d]) (*output.shape)[d] = kUnknownDim;
    }
  }
}

// The number that the first dimensions of all `tensors` are fixed to.
std::optional<int64_t> CommonFirst(const std::vector<TensorFacts>& tensors) {
  std::optional<int64_t> common;
  for (const TensorFacts& tensor : tensors) {
    if (!tensor.shape || tensor.shape->empty() || tensor.shape->front() < 0) return std::nullopt;
    if (common && *common != tensor.shape->front()) return std::nullopt;
    common = tensor.shape->front();
  }
  return common;
}

std::string WhyNotBatchable(const GraphFacts& facts) {
  if (facts.inputs.empty()) return "it has no input";
  for (const auto& [list, word] : {std::pair(&facts.inputs, "input"), std::pair(&facts.outputs, "output")}) {
    for (const TensorFacts& tensor : *list) {
      if (!tensor.shape) return fmt::format("the file does not tell the shape of {} {}", word, tensor.name);
      if (tensor.shape->empty())
        return fmt::format("{} {} is a single number, without a batch dimension", word, tensor.name);
      if (tensor.shape->front() >= 0) {
        return fmt::format("{} {} has a fixed first dimension of {}", word, tensor.name,
                           tensor.shape->front());
      }
    }
  }
  return "";
}

// The first dimension of recurrent layers is time, not the batch.
bool IsRecurrent(const Net& net) {
  return std::ranges::any_of(net.nodes, [](const Node& node) {
    const std::string& type = node.proto->op_type();
    return type == "LSTM" || type == "GRU" || type == "RNN";
  });
}

void FillFigures(Net net, GraphFacts& facts) {
  PropagateShapes(net, 1);
  const Work work = WorkOf(net);
  const Structure structure = StructureOf(net);
  // A batch that is built in: the sums are over all its items.
  const auto built_in = CommonFirst(facts.inputs);
  const bool is_batch = built_in && built_in == CommonFirst(facts.outputs) && !IsRecurrent(net);
  const int64_t items = is_batch ? std::max<int64_t>(*built_in, 1) : 1;
  const auto per_item = [&](std::optional<int64_t> sum) {
    return sum ? std::optional(*sum / items) : std::nullopt;
  };
  facts.parameters = work.parameters;
  facts.multiply_adds_per_item = per_item(work.multiply_adds);
  facts.activations_per_item = per_item(work.activations);
  facts.depth = structure.depth;
  facts.inner_modules = structure.inner_modules;
}

Result<GraphFacts> Describe(const pb::ModelProto& model, const std::string& folder) {
  GraphFacts facts;
  facts.external_bytes = TRY(CheckSafe(model, folder));
  facts.ir_version = model.ir_version();
  for (const auto& opset : model.opset_import()) {
    facts.opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  }
  facts.producer = model.producer_name();
  if (!model.producer_version().empty()) facts.producer += " " + model.producer_version();
  facts.nodes = model.graph().node_size();
  for (const auto* input : InputsOf(model.graph())) facts.inputs.push_back(FactsOf(*input));
  for (const auto& output : model.graph().output()) facts.outputs.push_back(FactsOf(output));
  if (facts.outputs.empty()) return Fail(ErrorCode::kCorrupt, "the graph has no output");

  const Net net = MakeNet(model);
  FillOutputShapes(net, facts);
  FillFigures(net, facts);
  facts.not_batchable = WhyNotBatchable(facts);
  facts.fixed_batch = CommonFirst(facts.inputs);
  return facts;
}

}  // namespace

Result<GraphFacts> ReadGraph(const std::string& path) {
  const LoadedModel loaded = TRY(LoadModel(path));
  const std::string folder = std::filesystem::path(loaded.path).parent_path().string();
  GraphFacts facts = TRY_CONTEXT(Describe(loaded.model, folder), path);
  facts.path = loaded.path;
  facts.file_bytes = loaded.bytes;
  return facts;
}

Result<GraphFacts> ParseGraph(std::string_view bytes, const std::string& folder) {
  const pb::ModelProto model = TRY(ParseModel(bytes));
  GraphFacts facts = TRY(Describe(model, folder));
  facts.file_bytes = bytes.size();
  return facts;
}

}  // namespace weir::onnx
