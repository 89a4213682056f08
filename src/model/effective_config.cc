#include "model/effective_config.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "model/config_message.h"

namespace weir::model {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

const ConfigTensor* Find(const std::vector<ConfigTensor>& tensors, const std::string& name) {
  const auto found =
      std::ranges::find(tensors, name, [](const ConfigTensor& tensor) { return tensor.info.name; });
  return found == tensors.end() ? nullptr : &*found;
}

// The tensor as the model has it, where clients see it in another shape; null otherwise.
const infer::TensorInfo* Reshaped(const infer::TensorInfo& seen, const infer::TensorInfo* own,
                                  const std::vector<infer::TensorInfo>& client_view) {
  const bool is_view = std::ranges::find(client_view, seen) != client_view.end();
  return is_view && own != nullptr && own->shape != seen.shape ? own : nullptr;
}

// `message` is a ModelInput or a ModelOutput; `reshaped` is Reshaped of it.
template <typename T>
void PutTensor(const infer::TensorInfo& tensor, const infer::TensorInfo* reshaped, bool batched, T& message) {
  message.set_name(tensor.name);
  message.set_data_type(DataTypeOf(tensor.dtype));
  for (size_t i = batched ? 1 : 0; i < tensor.shape.size(); ++i) message.add_dims(tensor.shape[i]);
  if (reshaped == nullptr) return;
  auto& reshape = *message.mutable_reshape();
  for (size_t i = batched ? 1 : 0; i < reshaped->shape.size(); ++i) reshape.add_shape(reshaped->shape[i]);
}

pb::ModelInput::Format FormatOf(dataset::Layout layout) {
  return layout == dataset::Layout::kNhwc ? pb::ModelInput::FORMAT_NHWC : pb::ModelInput::FORMAT_NCHW;
}

// Puts the layout of pictures: the configuration's, or else that of the recipe, which has checked that the
// input is one of pictures. Pixels that the server normalises are always in rows.
void PutFormat(const Model& model, const infer::TensorInfo& input, const ConfigTensor* configured,
               pb::ModelInput& put) {
  const auto own = std::ranges::find(model.client_inputs, input.name, &infer::TensorInfo::name);
  if (own != model.client_inputs.end() && *own == input) {
    if (configured != nullptr && configured->format) {
      put.set_format(FormatOf(*configured->format));
    } else if (model.recipe && input.shape.size() == 4) {
      put.set_format(FormatOf(model.recipe->layout));
    }
  } else if (model.recipe && input.shape.size() == 4) {
    put.set_format(pb::ModelInput::FORMAT_NHWC);
  }
}

void PutTensors(const Model& model, const ServedForm& form, pb::ModelConfig& message) {
  const bool batched = form.max_batch > 0;
  message.clear_input();
  message.clear_output();
  for (const infer::TensorInfo& input : form.inputs) {
    const ConfigTensor* configured = Find(model.config.inputs, input.name);
    pb::ModelInput& put = *message.add_input();
    PutTensor(input, Reshaped(input, FindInput(model, input.name), model.client_inputs), batched, put);
    PutFormat(model, input, configured, put);
    put.set_optional(input.optional);
  }
  for (const infer::TensorInfo& output : form.outputs) {
    const ConfigTensor* configured = Find(model.config.outputs, output.name);
    pb::ModelOutput& put = *message.add_output();
    const auto own = std::ranges::find(model.outputs, output.name, &infer::TensorInfo::name);
    PutTensor(output, Reshaped(output, own == model.outputs.end() ? nullptr : &*own, model.client_outputs),
              batched, put);
    if (configured != nullptr) put.set_label_filename(configured->label_filename);
    if (put.label_filename().empty() && output.name == ScoresOf(model))
      put.set_label_filename(model.label_file);
  }
}

pb::ModelConfig Complete(const Model& model, const ServedForm& form) {
  pb::ModelConfig message;
  message.ParseFromString(model.config.message);
  message.set_name(form.name);
  message.set_backend(form.engine);
  if (form.engine == "onnxruntime") message.set_platform("onnxruntime_onnx");
  if (!message.has_version_policy()) message.mutable_version_policy()->mutable_latest()->set_num_versions(1);
  message.set_max_batch_size(form.max_batch);
  PutTensors(model, form, message);
  message.clear_instance_group();
  pb::ModelInstanceGroup& group = *message.add_instance_group();
  group.set_name(form.name);
  group.set_kind(form.gpus.empty() ? pb::ModelInstanceGroup::KIND_CPU : pb::ModelInstanceGroup::KIND_GPU);
  for (const int gpu : form.gpus) group.add_gpus(gpu);
  group.set_count(form.instances);
  message.set_default_model_filename(model.config.model_file);
  for (const auto& [key, value] : form.parameters)
    (*message.mutable_parameters())[key].set_string_value(value);
  return message;
}

void NumbersFromText(const Descriptor& type, Json& json);

void NumberFromText(const FieldDescriptor& field, Json& value) {
  const auto type = field.cpp_type();
  if (type == FieldDescriptor::CPPTYPE_MESSAGE) return NumbersFromText(*field.message_type(), value);
  const bool wide = type == FieldDescriptor::CPPTYPE_INT64 || type == FieldDescriptor::CPPTYPE_UINT64;
  if (!wide || !value.is_string()) return;
  const auto& text = value.get_ref<const std::string&>();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) value = number;
}

// protobuf writes 64-bit integers as text; readers of Triton's configurations want numbers.
void NumbersFromText(const Descriptor& type, Json& json) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const auto found = json.find(field.name());
    if (found == json.end()) continue;
    if (field.is_map()) {
      const FieldDescriptor& value = *field.message_type()->map_value();
      for (auto& entry : *found) NumberFromText(value, entry);
    } else if (field.is_repeated()) {
      for (auto& entry : *found) NumberFromText(field, entry);
    } else {
      NumberFromText(field, *found);
    }
  }
}

}  // namespace

Result<EffectiveConfig> MakeEffectiveConfig(const Model& model, const ServedForm& form) {
  const pb::ModelConfig message = Complete(model, form);
  EffectiveConfig effective;
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok() || !message.SerializeToString(&effective.message))
    return Fail(ErrorCode::kInternal, "the configuration of " + form.name + " cannot be written");
  effective.json = TRY(ParseJson(text));
  NumbersFromText(*message.GetDescriptor(), effective.json);
  return effective;
}

}  // namespace weir::model
