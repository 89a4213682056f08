#include "oip/model_facts.h"

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "base/text.h"
#include "oip/infer_rules.h"

namespace weir::oip {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr int kMaxBatchSize = 4, kInstanceGroup = 7, kDynamicBatching = 11,
              kParameters = 14;  // of inference.ModelConfig
constexpr int64_t kMostInstances = 1 << 20;

std::unexpected<Error> Corrupt(std::string_view what) { return Fail(ErrorCode::kCorrupt, std::string(what)); }

// The member `key` of `json`, where it is there and an array; else an empty one.
const Json& ArrayOf(const Json& json, const char* key) {
  static const Json kNone = Json::array();
  if (!json.is_object()) return kNone;
  const auto found = json.find(key);
  return found != json.end() && found->is_array() ? *found : kNone;
}

Result<std::vector<infer::TensorInfo>> ReadTensors(const Json& tensors) {
  std::vector<infer::TensorInfo> infos;
  for (const Json& tensor : tensors) {
    infer::TensorInfo info{.name = TRY(GetString(tensor, "name")), .dtype = {}, .shape = {}};
    info.dtype = TRY(infer::ParseDType(TRY(GetString(tensor, "datatype"))));
    for (const Json& dimension : ArrayOf(tensor, "shape")) {
      if (!dimension.is_number_integer()) return Corrupt(fmt::format("the shape of {}", Quoted(info.name)));
      if (info.shape.size() == kMaxRank)
        return Corrupt(
            fmt::format("the shape of {} has more than {} dimensions", Quoted(info.name), kMaxRank));
      info.shape.push_back(dimension.get<int64_t>());
    }
    if (infos.size() == kMaxTensors) return Corrupt(fmt::format("more than {} tensors", kMaxTensors));
    infos.push_back(std::move(info));
  }
  return infos;
}

infer::PhaseTotals::Phase ReadPhase(const Json& phases, const char* key) {
  infer::PhaseTotals::Phase phase;
  const auto found = phases.find(key);
  if (found == phases.end() || !found->is_object()) return phase;
  phase.count = static_cast<uint64_t>(GetInteger(*found, "count").value_or(0));
  phase.total = Duration(GetInteger(*found, "ns").value_or(0));
  return phase;
}

Status SetMaxBatch(int64_t max_batch, infer::ModelInfo& info) {
  if (max_batch < 0 || max_batch > std::numeric_limits<int>::max())
    return Corrupt(fmt::format("max_batch_size is {}", max_batch));
  info.max_batch = static_cast<int>(max_batch);
  return {};
}

Status SetPriorityLevels(uint64_t levels, infer::ModelInfo& info) {
  if (levels > static_cast<uint64_t>(std::numeric_limits<int>::max()))
    return Corrupt(fmt::format("priority_levels is {}", levels));
  info.priority_levels = static_cast<int>(levels);
  return {};
}

// An integer of 64 bits, which protobuf's own JSON writes as text.
Result<uint64_t> ReadUnsigned(const Json& value, const char* key) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  uint64_t number = 0;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const char* const last = text.data() + text.size();
    const auto [end, fault] = std::from_chars(text.data(), last, number);
    if (!text.empty() && fault == std::errc() && end == last) return number;
  }
  return Corrupt(fmt::format("{} is {}", key, DumpJson(value)));
}

Status AddBatching(const Json& configuration, infer::ModelInfo& info) {
  info.priority_levels = 0;
  const auto batching = configuration.find("dynamic_batching");
  if (batching == configuration.end() || !batching->is_object()) return {};
  info.parameters[kJoinsRequests] = "true";
  const auto levels = batching->find("priority_levels");
  if (levels == batching->end()) return {};
  return SetPriorityLevels(TRY(ReadUnsigned(*levels, "priority_levels")), info);
}

Status AddBatchingMessage(const std::string& message, infer::ModelInfo& info) {
  constexpr int kPriorityLevels = 4;  // of inference.ModelDynamicBatching
  UnknownFieldSet fields;
  if (!fields.ParseFromString(message)) return Corrupt("dynamic_batching of the configuration");
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == kPriorityLevels && field.type() == UnknownField::TYPE_VARINT)
      TRY_STATUS(SetPriorityLevels(field.varint(), info));
  }
  return {};
}

// One group of instances, on each of `gpus` accelerators or on the CPU. Weir's own servers tell the threads
// of the engine; an accelerator takes none.
void AddInstances(int64_t count, int64_t gpus, bool on_gpu, infer::ModelInfo& info) {
  const int64_t here = std::clamp<int64_t>(count, 1, kMostInstances) * std::clamp<int64_t>(gpus, 1, 1024);
  const int64_t before = ReadNumber(info.parameters, kInstances).value_or(0);
  info.parameters[kInstances] = fmt::format("{}", std::min(kMostInstances, before + here));
  if (on_gpu) info.parameters.try_emplace(kThreads, "0");
}

void AddGroups(const Json& configuration, infer::ModelInfo& info) {
  for (const Json& group : ArrayOf(configuration, "instance_group")) {
    AddInstances(GetInteger(group, "count").value_or(1), std::ssize(ArrayOf(group, "gpus")),
                 GetString(group, "kind").value_or("") == "KIND_GPU", info);
  }
}

Status AddGroupMessage(const std::string& message, infer::ModelInfo& info) {
  constexpr int kCount = 2, kGpus = 3, kKind = 4;  // of inference.ModelInstanceGroup
  constexpr uint64_t kGpu = 1;
  UnknownFieldSet fields;
  if (!fields.ParseFromString(message)) return Corrupt("an instance_group of the configuration");
  int64_t count = 1, gpus = 0;
  bool on_gpu = false;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    const bool number = field.type() == UnknownField::TYPE_VARINT;
    if (field.number() == kCount && number) count = static_cast<int64_t>(field.varint());
    if (field.number() == kKind && number) on_gpu = field.varint() == kGpu;
    if (field.number() == kGpus && number) ++gpus;
    // Packed: the last byte of each number has no highest bit.
    if (field.number() == kGpus && field.type() == UnknownField::TYPE_LENGTH_DELIMITED)
      gpus += std::ranges::count_if(field.length_delimited(), [](char c) { return (c & 0x80) == 0; });
  }
  AddInstances(count, gpus, on_gpu, info);
  return {};
}

const std::string* TextField(const UnknownFieldSet& fields, int number) {
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == UnknownField::TYPE_LENGTH_DELIMITED)
      return &field.length_delimited();
  }
  return nullptr;
}

// One entry of map<string, ModelParameter>, whose value has its text in field 1.
Status AddParameter(const std::string& entry, infer::ModelInfo& info) {
  UnknownFieldSet pair, parameter;
  if (!pair.ParseFromString(entry)) return Corrupt("a parameter of the configuration");
  const std::string *key = TextField(pair, 1), *value = TextField(pair, 2);
  if (!key || !value) return {};
  if (!parameter.ParseFromString(*value)) return Corrupt(fmt::format("the parameter {}", *key));
  const std::string* text = TextField(parameter, 1);
  info.parameters[*key] = text ? *text : "";
  return {};
}

}  // namespace

std::optional<int64_t> ReadNumber(const std::map<std::string, std::string>& parameters, const char* name) {
  const auto told = parameters.find(name);
  if (told == parameters.end()) return std::nullopt;
  int64_t number = 0;
  const char* const last = told->second.data() + told->second.size();
  const auto [end, fault] = std::from_chars(told->second.data(), last, number);
  return fault == std::errc() && end == last && number >= 0 ? std::optional(number) : std::nullopt;
}

Result<infer::ModelInfo> ReadMetadata(const Json& metadata) {
  infer::ModelInfo info;
  info.name = TRY(GetString(metadata, "name"));
  info.platform = GetString(metadata, "platform").value_or("");
  for (const Json& version : ArrayOf(metadata, "versions")) {
    if (version.is_string()) info.versions.push_back(version.get<std::string>());
  }
  info.inputs = TRY(ReadTensors(ArrayOf(metadata, "inputs")));
  info.outputs = TRY(ReadTensors(ArrayOf(metadata, "outputs")));
  return info;
}

Status AddConfiguration(const Json& configuration, infer::ModelInfo& info) {
  if (!configuration.is_object()) return Corrupt("the configuration is not an object");
  TRY_STATUS(SetMaxBatch(GetInteger(configuration, "max_batch_size").value_or(0), info));
  TRY_STATUS(AddBatching(configuration, info));
  AddGroups(configuration, info);
  const auto parameters = configuration.find("parameters");
  if (parameters == configuration.end() || !parameters->is_object()) return {};
  for (const auto& [key, value] : parameters->items()) {
    if (auto text = GetString(value, "string_value")) info.parameters[key] = *std::move(text);
  }
  return {};
}

std::vector<std::string> ReadExtensions(const Json& server) {
  std::vector<std::string> extensions;
  for (const Json& extension : ArrayOf(server, "extensions")) {
    if (extension.is_string()) extensions.push_back(extension.get<std::string>());
  }
  return extensions;
}

Result<std::vector<std::string>> ReadReadyModels(const Json& index) {
  if (!index.is_array()) return Corrupt("the repository index is not an array");
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Json& entry : index) {
    const std::string name = TRY(GetString(entry, "name"));
    const bool ready = GetString(entry, "state").value_or("READY") == "READY";
    if (ready && seen.insert(name).second) names.push_back(name);
  }
  return names;
}

Result<infer::PhaseTotals> ReadStatistics(const Json& statistics) {
  infer::PhaseTotals sum;
  const Json& models = ArrayOf(statistics, "model_stats");
  if (models.empty()) return Corrupt("the statistics name no model");
  for (const Json& model : models) {
    const auto phases = model.find("inference_stats");
    if (phases == model.end() || !phases->is_object())
      return Corrupt("the statistics have no inference_stats");
    sum += {.rows = static_cast<uint64_t>(TRY(GetInteger(model, "inference_count"))),
            .batches = static_cast<uint64_t>(TRY(GetInteger(model, "execution_count"))),
            .success = ReadPhase(*phases, "success"),
            .fail = ReadPhase(*phases, "fail"),
            .queue = ReadPhase(*phases, "queue"),
            .compute_input = ReadPhase(*phases, "compute_input"),
            .compute_infer = ReadPhase(*phases, "compute_infer"),
            .compute_output = ReadPhase(*phases, "compute_output")};
  }
  return sum;
}

Status AddConfigurationMessage(const std::string& message, infer::ModelInfo& info) {
  info.priority_levels = 0;
  UnknownFieldSet fields;
  if (!fields.ParseFromString(message)) return Corrupt("the configuration is not a protobuf message");
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == kMaxBatchSize && field.type() == UnknownField::TYPE_VARINT) {
      TRY_STATUS(SetMaxBatch(static_cast<int64_t>(field.varint()), info));
    } else if (field.number() == kInstanceGroup && field.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
      TRY_STATUS(AddGroupMessage(field.length_delimited(), info));
    } else if (field.number() == kDynamicBatching && field.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
      info.parameters[kJoinsRequests] = "true";
      TRY_STATUS(AddBatchingMessage(field.length_delimited(), info));
    } else if (field.number() == kParameters && field.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
      TRY_STATUS(AddParameter(field.length_delimited(), info));
    }
  }
  return {};
}

std::string LabelsParameter(const std::string& labels) {
  if (labels.empty()) return "";
  UnknownFieldSet parameter, entry, config;
  std::string text;
  parameter.AddLengthDelimited(1, labels);
  CHECK(parameter.SerializeToString(&text));
  entry.AddLengthDelimited(1, "labels");
  entry.AddLengthDelimited(2, text);
  CHECK(entry.SerializeToString(&text));
  config.AddLengthDelimited(kParameters, text);
  CHECK(config.SerializeToString(&text));
  return text;
}

}  // namespace weir::oip
