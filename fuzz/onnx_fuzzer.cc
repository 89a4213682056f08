// Any bytes as an ONNX file: read without a crash or a hang, and no figure is impossible. Bytes seldom make a
// graph, so half of the mutations change a field of a parsed model instead.
#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "onnx/graph.h"

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// One of the messages inside, each as likely as the others.
Message* PickMessage(Message* message, std::minstd_rand& random, size_t& seen) {
  Message* picked = random() % ++seen == 0 ? message : nullptr;
  const Reflection* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      Message* inner = field->is_repeated() ? reflection->MutableRepeatedMessage(message, field, i)
                                            : reflection->MutableMessage(message, field);
      if (Message* found = PickMessage(inner, random, seen)) picked = found;
    }
  }
  return picked;
}

int64_t OddNumber(int64_t old, std::minstd_rand& random) {
  constexpr int64_t kOdd[] = {
      0, 1, -1, 2, 3, 7, 64, 1000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int64_t{1} << 40};
  const auto pick = random() % (std::size(kOdd) + 2);
  return pick < std::size(kOdd) ? kOdd[pick] : pick == std::size(kOdd) ? old + (old < 9) : old - (old > -9);
}

// Names of the model's own values and operators, so that nodes get connected in new ways.
std::string OtherName(const onnx::ModelProto& model, std::minstd_rand& random) {
  constexpr const char* kOperators[] = {
      "Conv",   "Reshape", "Slice",     "Pad",         "Resize",  "Concat",        "Split",
      "MatMul", "Gemm",    "Add",       "Expand",      "Tile",    "Shape",         "Gather",
      "Range",  "Squeeze", "Unsqueeze", "If",          "MaxPool", "ConvTranspose", "ConstantOfShape",
      "Einsum", "LSTM",    "TopK",      "DepthToSpace"};
  const auto& graph = model.graph();
  if (random() % 2 == 0 || graph.node_size() == 0) return kOperators[random() % std::size(kOperators)];
  const auto& node = graph.node(static_cast<int>(random() % static_cast<unsigned>(graph.node_size())));
  const auto& names = random() % 2 == 0 ? node.input() : node.output();
  return names.empty() ? node.op_type()
                       : names.Get(static_cast<int>(random() % static_cast<unsigned>(names.size())));
}

void Mutate(onnx::ModelProto& model, std::minstd_rand& random) {
  size_t seen = 0;
  Message* message = PickMessage(&model, random, seen);
  const auto* descriptor = message->GetDescriptor();
  const auto* field =
      descriptor->field(static_cast<int>(random() % static_cast<unsigned>(descriptor->field_count())));
  const Reflection* reflection = message->GetReflection();
  const int size = field->is_repeated() ? reflection->FieldSize(*message, field) : 0;
  const int at = size > 0 ? static_cast<int>(random() % static_cast<unsigned>(size)) : 0;
  if (field->is_repeated() && size > 0 && random() % 8 == 0) return reflection->RemoveLast(message, field);
  if (field->is_repeated() && size > 1 && random() % 8 == 0)
    return reflection->SwapElements(message, field, at, 0);
  const bool add = field->is_repeated() && (size == 0 || random() % 4 == 0);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: {
      const int64_t old = field->is_repeated() ? (add ? 0 : reflection->GetRepeatedInt64(*message, field, at))
                                               : reflection->GetInt64(*message, field);
      const int64_t odd = OddNumber(old, random);
      if (add) return reflection->AddInt64(message, field, odd);
      if (field->is_repeated()) return reflection->SetRepeatedInt64(message, field, at, odd);
      return reflection->SetInt64(message, field, odd);
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto odd = static_cast<int32_t>(random() % 26);
      if (add) return reflection->AddInt32(message, field, odd);
      if (field->is_repeated()) return reflection->SetRepeatedInt32(message, field, at, odd);
      return reflection->SetInt32(message, field, odd);
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string name = random() % 8 == 0 ? "" : OtherName(model, random);
      if (add) return reflection->AddString(message, field, name);
      if (field->is_repeated()) return reflection->SetRepeatedString(message, field, at, name);
      return reflection->SetString(message, field, name);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (!field->is_repeated()) {
        reflection->MutableMessage(message, field);
      } else if (size == 0) {
        reflection->AddMessage(message, field);
      } else {
        Message* copy = reflection->GetRepeatedMessage(*message, field, at).New();
        copy->CopyFrom(reflection->GetRepeatedMessage(*message, field, at));
        reflection->AddAllocatedMessage(message, field, copy);
      }
      return;
    default:
      if (random() % 2 == 0) reflection->ClearField(message, field);
  }
}

// A small network to begin from, where the corpus has none.
void Start(onnx::ModelProto& model) {
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  auto& type = *graph.add_input()->mutable_type()->mutable_tensor_type();
  graph.mutable_input(0)->set_name("x");
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("n");
  for (const int dim : {4, 8, 8}) type.mutable_shape()->add_dim()->set_dim_value(dim);
  auto& weight = *graph.add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  for (const int dim : {4, 4, 3, 3}) weight.add_dims(dim);
  auto& shape = *graph.add_initializer();
  shape.set_name("s");
  shape.set_data_type(onnx::TensorProto::INT64);
  shape.add_dims(2);
  for (const int dim : {-1, 144}) shape.add_int64_data(dim);
  const auto add = [&](const char* operation, std::initializer_list<const char*> inputs, const char* output) {
    auto& node = *graph.add_node();
    node.set_op_type(operation);
    for (const char* input : inputs) node.add_input(input);
    node.add_output(output);
  };
  add("Conv", {"x", "w"}, "c");
  add("Add", {"c", "c"}, "a");
  add("Reshape", {"a", "s"}, "y");
  graph.add_output()->set_name("y");
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::minstd_rand random(seed);
  onnx::ModelProto model;
  if (random() % 2 == 0 || !model.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, max_size);
  if (!model.has_graph()) Start(model);
  for (auto count = 1 + random() % 4; count > 0; --count) Mutate(model, random);
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  bytes.copy(reinterpret_cast<char*>(data), bytes.size());
  return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto facts = weir::onnx::ParseGraph(bytes, "/usr");
  if (!facts) return 0;
  for (const auto& figure : {facts->parameters, facts->multiply_adds_per_item, facts->activations_per_item,
                             facts->depth, facts->inner_modules, facts->fixed_batch}) {
    CHECK(!figure || *figure >= 0);
  }
  for (const auto* list : {&facts->inputs, &facts->outputs}) {
    for (const auto& tensor : *list) {
      if (!tensor.shape) continue;
      for (const int64_t dim : *tensor.shape) CHECK(dim >= -1);
    }
  }
  CHECK(!facts->depth || *facts->depth <= 1'000'000);
  return 0;
}
