#include "onnx/net.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace weir::onnx {
namespace {

constexpr int64_t kMaxContent = 1024;    // elements of a value that are followed
constexpr size_t kMaxNodes = 1'000'000;  // beyond this the net is incomplete

// Names that are visible at one place. A subgraph sees those around it, a function does not.
struct Scope {
  std::unordered_map<std::string, int> names;
  Scope* outer = nullptr;
  std::vector<int> captured;  // taken from `outer`
};

class Builder {
 public:
  explicit Builder(const pb::ModelProto& model) : model_(model) {}
  Net Build();

 private:
  using Nodes = google::protobuf::RepeatedPtrField<pb::NodeProto>;

  int NewValue() {
    const int id = static_cast<int>(net_.values.size());
    net_.values.emplace_back().storage = id;
    return id;
  }
  int Find(Scope& scope, const std::string& name);
  int FindOrMake(Scope& scope, const std::string& name);
  void Define(Scope& scope, const std::string& name, int value) { scope.names[name] = value; }
  void Declare(Scope& scope, const pb::ValueInfoProto& info);

  void AddConstants(const pb::GraphProto& graph, Scope& scope);
  void AddNodes(const Nodes& nodes, Scope& scope, int frame, bool in_control_flow);
  void AddCall(const pb::NodeProto& call, const pb::FunctionProto& function, Scope& scope, int frame,
               bool in_control_flow);
  void AddSubgraph(const pb::GraphProto& graph, Scope& outer, int frame);

  const pb::ModelProto& model_;
  std::map<std::pair<std::string, std::string>, const pb::FunctionProto*> functions_;
  std::set<std::pair<std::string, std::string>>
      ambiguous_;  // overloads, which the messages linked here cannot tell apart
  std::unordered_set<std::string> batch_symbols_;
  Net net_;
};

Dims DeclaredDims(const pb::TypeProto& type, const std::unordered_set<std::string>& batch_symbols) {
  if (!type.tensor_type().has_shape()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      dims.push_back(dim.dim_value());
    } else {
      dims.push_back(!dim.dim_param().empty() && batch_symbols.contains(dim.dim_param()) ? kBatchDim
                                                                                         : kUnknownDim);
    }
  }
  return dims;
}

int Builder::Find(Scope& scope, const std::string& name) {
  if (const auto found = scope.names.find(name); found != scope.names.end()) return found->second;
  if (scope.outer == nullptr) return -1;
  const int value = Find(*scope.outer, name);
  if (value >= 0) scope.captured.push_back(value);
  return value;
}

int Builder::FindOrMake(Scope& scope, const std::string& name) {
  if (name.empty()) return -1;
  if (const int value = Find(scope, name); value >= 0) return value;
  net_.complete = false;
  const int value = NewValue();
  Define(scope, name, value);
  return value;
}

void Builder::Declare(Scope& scope, const pb::ValueInfoProto& info) {
  const int value = Find(scope, info.name());
  if (value >= 0) net_.values[value].declared = DeclaredDims(info.type(), batch_symbols_);
}

void Builder::AddConstants(const pb::GraphProto& graph, Scope& scope) {
  const auto add = [&](const std::string& name, int32_t type, const auto& dims) -> Value& {
    const int id = NewValue();
    Define(scope, name, id);
    Value& value = net_.values[id];
    value.origin = Origin::kConstant;
    value.type = type;
    value.dims.emplace(dims.begin(), dims.end());
    for (int64_t& dim : *value.dims) {
      if (dim > kMaxDim) dim = kUnknownDim;
    }
    return value;
  };
  for (const auto& tensor : graph.initializer()) {
    add(tensor.name(), tensor.data_type(), tensor.dims()).content = SmallContent(tensor);
  }
  for (const auto& sparse : graph.sparse_initializer()) {
    add(sparse.values().name(), sparse.values().data_type(), sparse.dims());
  }
}

void Builder::AddNodes(const Nodes& nodes, Scope& scope, int frame, bool in_control_flow) {
  for (const auto& proto : nodes) {
    if (net_.nodes.size() + net_.frames.size() >= kMaxNodes) {
      net_.complete = false;
      return;
    }
    const auto function = functions_.find({proto.domain(), proto.op_type()});
    if (function != functions_.end()) {
      AddCall(proto, *function->second, scope, frame, in_control_flow);
      continue;
    }
    Node node{.proto = &proto, .frame = frame, .in_control_flow = in_control_flow};
    for (const auto& name : proto.input()) node.inputs.push_back(FindOrMake(scope, name));
    const auto add_subgraph = [&](const pb::GraphProto& graph) {
      Scope inner{.outer = &scope};
      AddSubgraph(graph, inner, frame);
      node.captured.insert(node.captured.end(), inner.captured.begin(), inner.captured.end());
    };
    for (const auto& attribute : proto.attribute()) {
      if (attribute.has_g()) add_subgraph(attribute.g());
      for (const auto& graph : attribute.graphs()) add_subgraph(graph);
    }
    for (const auto& name : proto.output()) {
      node.outputs.push_back(name.empty() ? -1 : NewValue());
      if (!name.empty()) Define(scope, name, node.outputs.back());
    }
    net_.nodes.push_back(std::move(node));
  }
}

// How often a subgraph runs is not known here: its nodes are in the net for their constants.
void Builder::AddSubgraph(const pb::GraphProto& graph, Scope& inner, int frame) {
  for (const auto& input : graph.input()) Define(inner, input.name(), NewValue());
  AddConstants(graph, inner);
  AddNodes(graph.node(), inner, frame, /*in_control_flow=*/true);
}

void Builder::AddCall(const pb::NodeProto& call, const pb::FunctionProto& function, Scope& scope, int frame,
                      bool in_control_flow) {
  if (ambiguous_.contains({function.domain(), function.name()})) net_.complete = false;
  net_.frames.push_back({.call = &call, .frame = frame, .defaults = &net_.defaults.at(&function)});
  const int inner_frame = static_cast<int>(net_.frames.size()) - 1;
  Scope inner;
  for (int i = 0; i < function.input_size(); ++i) {
    const int value = i < call.input_size() ? FindOrMake(scope, call.input(i)) : -1;
    if (value >= 0) Define(inner, function.input(i), value);
  }
  AddNodes(function.node(), inner, inner_frame, in_control_flow);
  for (int i = 0; i < call.output_size(); ++i) {
    if (call.output(i).empty()) continue;
    const std::string name = i < function.output_size() ? function.output(i) : "";
    const int value = name.empty() ? -1 : Find(inner, name);
    if (value < 0) net_.complete = false;
    Define(scope, call.output(i), value >= 0 ? value : NewValue());
  }
}

Net Builder::Build() {
  for (const auto& function : model_.functions()) {
    const std::pair key{function.domain(), function.name()};
    if (!functions_.emplace(key, &function).second) ambiguous_.insert(key);
    net_.defaults[&function] = FunctionDefaults(function);
  }
  const pb::GraphProto& graph = model_.graph();
  const auto inputs = InputsOf(graph);
  for (const auto* input : inputs) {
    const auto& shape = input->type().tensor_type().shape();
    if (shape.dim_size() > 0 && !shape.dim(0).dim_param().empty())
      batch_symbols_.insert(shape.dim(0).dim_param());
  }
  Scope scope;
  AddConstants(graph, scope);
  for (const auto* input : inputs) {
    const int id = NewValue();
    Define(scope, input->name(), id);
    net_.inputs.push_back(id);
    Value& value = net_.values[id];
    value.type = input->type().tensor_type().elem_type();
    value.declared = DeclaredDims(input->type(), batch_symbols_);
    if (value.declared && !value.declared->empty() && value.declared->front() == kUnknownDim) {
      value.declared->front() = kBatchDim;
    }
  }
  AddNodes(graph.node(), scope, /*frame=*/-1, /*in_control_flow=*/false);
  for (const auto& info : graph.value_info()) Declare(scope, info);
  for (const auto& output : graph.output()) {
    net_.outputs.push_back(FindOrMake(scope, output.name()));
    const bool is_input = std::ranges::find(net_.inputs, net_.outputs.back()) != net_.inputs.end();
    if (!is_input) Declare(scope, output);
  }
  return std::move(net_);
}

template <typename T>
void AppendRaw(std::string_view raw, std::vector<double>& content) {
  for (size_t i = 0; i + sizeof(T) <= raw.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, raw.data() + i, sizeof(T));
    content.push_back(static_cast<double>(value));
  }
}

}  // namespace

const pb::AttributeProto* Net::Attribute(const Node& node, std::string_view name) const {
  const auto find = [](const auto& attributes, std::string_view wanted) -> const pb::AttributeProto* {
    const auto found = std::ranges::find_if(attributes, [&](const auto& a) { return a.name() == wanted; });
    return found == attributes.end() ? nullptr : &*found;
  };
  const pb::AttributeProto* found = find(node.proto->attribute(), name);
  // A call's attribute may itself refer to the call around it; every step goes one frame outwards.
  for (int frame = node.frame; found != nullptr && !found->ref_attr_name().empty();
       frame = frames[frame].frame) {
    if (frame < 0) return nullptr;
    const std::string& wanted = found->ref_attr_name();
    found = find(frames[frame].call->attribute(), wanted);
    if (found == nullptr) return find(*frames[frame].defaults, wanted);
  }
  return found;
}

std::vector<const pb::ValueInfoProto*> InputsOf(const pb::GraphProto& graph) {
  std::unordered_set<std::string_view> filled;
  for (const auto& tensor : graph.initializer()) filled.insert(tensor.name());
  for (const auto& sparse : graph.sparse_initializer()) filled.insert(sparse.values().name());
  std::vector<const pb::ValueInfoProto*> inputs;
  for (const auto& input : graph.input()) {
    if (!filled.contains(input.name())) inputs.push_back(&input);
  }
  return inputs;
}

Net MakeNet(const pb::ModelProto& model) { return Builder(model).Build(); }

std::optional<std::vector<double>> SmallContent(const pb::TensorProto& tensor) {
  const std::optional<int64_t> elements = Product({tensor.dims().begin(), tensor.dims().end()});
  if (!elements || *elements > kMaxContent || tensor.dims_size() > 1) return std::nullopt;
  std::vector<double> content;
  const std::string_view raw = tensor.raw_data();
  switch (tensor.data_type()) {
    case pb::TensorProto::INT64:
      content.assign(tensor.int64_data().begin(), tensor.int64_data().end());
      if (content.empty()) AppendRaw<int64_t>(raw, content);
      break;
    case pb::TensorProto::INT32:
      content.assign(tensor.int32_data().begin(), tensor.int32_data().end());
      if (content.empty()) AppendRaw<int32_t>(raw, content);
      break;
    case pb::TensorProto::FLOAT:
      content.assign(tensor.float_data().begin(), tensor.float_data().end());
      if (content.empty()) AppendRaw<float>(raw, content);
      break;
    case pb::TensorProto::BOOL:
      content.assign(tensor.int32_data().begin(), tensor.int32_data().end());
      if (content.empty()) AppendRaw<uint8_t>(raw, content);
      break;
    default:
      return std::nullopt;
  }
  if (std::ssize(content) != *elements) return std::nullopt;
  return content;
}

}  // namespace weir::onnx
