#include "model/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "model/config_message.h"

namespace weir::model {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Keys of Triton's model_config.proto that are not supported; supported ones are in our own file.
constexpr std::array<std::string_view, 28> kOfTriton = {"allow_ragged_batch",
                                                        "batch_input",
                                                        "batch_output",
                                                        "cc_model_filenames",
                                                        "ensemble_scheduling",
                                                        "host_policy",
                                                        "is_non_linear_format_io",
                                                        "is_shape_tensor",
                                                        "max_sequence_idle_microseconds",
                                                        "metric_tags",
                                                        "model_metrics",
                                                        "model_operations",
                                                        "model_repository_agents",
                                                        "model_transaction_policy",
                                                        "op_library_filename",
                                                        "optimization",
                                                        "parameters",
                                                        "passive",
                                                        "preserve_ordering",
                                                        "profile",
                                                        "rate_limiter",
                                                        "response_cache",
                                                        "runtime",
                                                        "scheduling_choice",
                                                        "secondary_devices",
                                                        "sequence_batching",
                                                        "step",
                                                        "tags"};
constexpr size_t kMostShown = 80;  // bytes of a key

std::string Shown(std::string_view key) {
  return EscapeBytes(key.substr(0, kMostShown)) + (key.size() > kMostShown ? "..." : "");
}

std::unexpected<Error> NoSuchKey(const Descriptor& type, const std::string& path, std::string_view key) {
  const std::string name = path.empty() ? Shown(key) : path + "." + Shown(key);
  if (std::ranges::find(kOfTriton, key) != kOfTriton.end())
    return Fail(ErrorCode::kUnsupported, name + " is not supported");
  std::vector<std::string_view> known;
  for (int i = 0; i < type.field_count(); ++i) known.emplace_back(type.field(i)->name());
  const auto meant = Nearest(key.substr(0, kMostShown), known);
  return InvalidConfig(fmt::format("{}: no such key{}; known here: {}", name,
                                   meant ? fmt::format(", did you mean {}?", *meant) : "",
                                   fmt::join(known, ", ")));
}

Status CheckValue(const Descriptor& type, const std::string& path, const Json& value);

Status CheckObject(const Descriptor& type, const std::string& path, const Json& object) {
  for (const auto& [key, value] : object.items()) {
    const FieldDescriptor* field = type.FindFieldByName(key);
    // Both spellings are JSON's: data_type and dataType.
    if (field == nullptr) field = type.FindFieldByCamelcaseName(key);
    if (field == nullptr) return NoSuchKey(type, path, key);
    const std::string here = path.empty() ? key : path + "." + key;
    if (field->is_map()) {
      const Descriptor* const entry = field->message_type()->map_value()->message_type();
      if (entry == nullptr || !value.is_object()) continue;
      for (const auto& [name, item] : value.items())
        TRY_STATUS(CheckValue(*entry, here + "." + Shown(name), item));
    } else if (field->message_type() != nullptr) {
      TRY_STATUS(CheckValue(*field->message_type(), here, value));
    }
  }
  return {};
}

Status CheckValue(const Descriptor& type, const std::string& path, const Json& value) {
  if (value.is_object()) return CheckObject(type, path, value);
  if (!value.is_array()) return {};
  for (const Json& item : value) {
    if (item.is_object()) TRY_STATUS(CheckObject(type, path, item));
  }
  return {};
}

}  // namespace

Status CheckConfigKeys(const Json& config) { return CheckValue(*pb::ModelConfig::descriptor(), "", config); }

}  // namespace weir::model
