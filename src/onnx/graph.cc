#include "onnx/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "onnx/load.h"
#include "onnx/net.h"
#include "onnx/safety.h"
#include "onnx/shapes.h"
#include "onnx/structure.h"
#include "onnx/work.h"

namespace weir::onnx {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFirstWithReplaceable = 4;  // IR version

// The protocol's names, and ONNX's own for types that it has not.
std::string DatatypeName(int32_t type) {
  static const std::map<int32_t, std::string> protocol = {{pb::TensorProto::FLOAT, "FP32"},
                                                          {pb::TensorProto::DOUBLE, "FP64"},
                                                          {pb::TensorProto::FLOAT16, "FP16"},
                                                          {pb::TensorProto::BFLOAT16, "BF16"},
                                                          {pb::TensorProto::STRING, "BYTES"}};
  // Types that are younger than the messages linked here.
  static const std::map<int32_t, std::string> younger = {
      {17, "FLOAT8E4M3FN"}, {18, "FLOAT8E4M3FNUZ"}, {19, "FLOAT8E5M2"}, {20, "FLOAT8E5M2FNUZ"}, {21, "UINT4"},
      {22, "INT4"},         {23, "FLOAT4E2M1"},     {24, "FLOAT8E8M0"}, {25, "UINT2"},          {26, "INT2"}};
  if (const auto name = protocol.find(type); name != protocol.end()) return name->second;
  if (const auto name = younger.find(type); name != younger.end()) return name->second;
  if (type != pb::TensorProto::UNDEFINED && pb::TensorProto::DataType_IsValid(type))
    return pb::TensorProto::DataType_Name(static_cast<pb::TensorProto::DataType>(type));
  return fmt::format("ONNX-TYPE-{}", type);
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
    if (!a->empty() && a->front() == kUnknownDim && b->front() == kUnknownDim) {
      output.not_batchable =
          fmt::format("the data may decide how long the first dimension of output {} is", output.name);
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

std::string WhyNotBatchable(const TensorFacts& tensor, const char* word) {
  if (!tensor.shape) return fmt::format("the file does not tell the shape of {} {}", word, tensor.name);
  if (tensor.shape->empty())
    return fmt::format("{} {} is a single number, without a batch dimension", word, tensor.name);
  if (tensor.shape->front() < 0) return "";
  return fmt::format("{} {} has a fixed first dimension of {}", word, tensor.name, tensor.shape->front());
}

void FillBatch(GraphFacts& facts) {
  if (facts.inputs.empty()) facts.not_batchable = "it has no input";
  for (const auto& [list, word] : {std::pair(&facts.inputs, "input"), std::pair(&facts.outputs, "output")}) {
    for (TensorFacts& tensor : *list) {
      if (tensor.not_batchable.empty()) tensor.not_batchable = WhyNotBatchable(tensor, word);
      if (facts.not_batchable.empty()) facts.not_batchable = tensor.not_batchable;
    }
  }
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

Result<GraphFacts> Describe(const pb::ModelProto& model, uint64_t external_bytes) {
  GraphFacts facts;
  facts.external_bytes = external_bytes;
  facts.ir_version = model.ir_version();
  for (const auto& opset : model.opset_import()) {
    facts.opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  }
  facts.producer = model.producer_name();
  if (!model.producer_version().empty()) facts.producer += " " + model.producer_version();
  facts.nodes = model.graph().node_size();
  const auto inputs = InputsOf(model.graph());
  for (const auto* input : inputs) facts.inputs.push_back(FactsOf(*input));
  for (const auto& input : model.graph().input()) {
    const bool is_filled = std::ranges::find(inputs, &input) == inputs.end();
    if (is_filled && model.ir_version() >= kFirstWithReplaceable)
      facts.filled_inputs.push_back(FactsOf(input));
  }
  for (const auto& output : model.graph().output()) facts.outputs.push_back(FactsOf(output));
  if (facts.outputs.empty()) return Fail(ErrorCode::kCorrupt, "the graph has no output");

  const Net net = MakeNet(model);
  FillOutputShapes(net, facts);
  FillFigures(net, facts);
  FillBatch(facts);
  facts.fixed_batch = CommonFirst(facts.inputs);
  return facts;
}

// The links that `path` is and leads through, the first one first.
std::vector<std::string> LinksTo(const std::string& path) {
  constexpr int kMost = 40;  // as the kernel follows
  std::vector<std::string> links;
  std::error_code error;
  for (fs::path step = fs::absolute(path, error); std::ssize(links) < kMost;) {
    if (error || !fs::is_symlink(fs::symlink_status(step, error))) break;
    links.push_back(step.string());
    step = step.parent_path() / fs::read_symlink(step, error);
  }
  return links;
}

}  // namespace

Result<GraphFacts> ReadGraph(const std::string& path, const std::vector<std::string>& roots) {
  const LoadedModel loaded = TRY(LoadModel(path));
  // Its data lie beside the file, or beside one of the links to it.
  std::string last = loaded.path;
  Result<uint64_t> external = CheckSafe(loaded.model, {fs::path(last).parent_path().string(), roots});
  const std::vector<std::string> links = LinksTo(path);
  for (auto link = links.begin(); !external && link != links.end(); ++link) {
    auto here = CheckSafe(loaded.model, {fs::path(*link).parent_path().string(), roots});
    if (here || link == links.begin()) external = std::move(here);
    last = *link;
  }
  if (!external) return Context(path, external.error());
  GraphFacts facts = TRY_CONTEXT(Describe(loaded.model, *external), path);
  facts.path = last;
  facts.file_bytes = loaded.bytes;
  return facts;
}

Result<GraphFacts> ParseGraph(std::string_view bytes, const std::string& folder) {
  const pb::ModelProto model = TRY(ParseModel(bytes));
  GraphFacts facts = TRY(Describe(model, TRY(CheckSafe(model, {folder, {}}))));
  facts.file_bytes = bytes.size();
  return facts;
}

}  // namespace weir::onnx
