#include "oip/http/control_json.h"

#include <fmt/format.h>

#include <utility>

#include "base/base64.h"
#include "oip/repository_rules.h"

namespace weir::oip {
namespace {

Json Tensors(const std::vector<infer::TensorInfo>& tensors) {
  Json list = Json::array();
  for (const infer::TensorInfo& tensor : tensors) {
    list.push_back(
        {{"name", tensor.name}, {"datatype", infer::ToString(tensor.dtype)}, {"shape", tensor.shape}});
  }
  return list;
}

Json ToJson(const DurationCount& duration) {
  return {{"count", duration.count}, {"ns", duration.total.count()}};
}

Json ToJson(const BatchStatistics& batch) {
  return {{"batch_size", batch.batch_size},
          {"compute_input", ToJson(batch.compute_input)},
          {"compute_infer", ToJson(batch.compute_infer)},
          {"compute_output", ToJson(batch.compute_output)}};
}

Json ToJson(const ModelStatistics& model) {
  Json batches = Json::array();
  for (const BatchStatistics& batch : model.batches) batches.push_back(ToJson(batch));
  const Json none = ToJson(DurationCount{});  // there is no cache
  return {{"name", model.name},
          {"version", model.version},
          {"last_inference", model.last_inference_ms},
          {"inference_count", model.inference_count},
          {"execution_count", model.execution_count},
          {"inference_stats",
           {{"success", ToJson(model.success)},
            {"fail", ToJson(model.fail)},
            {"queue", ToJson(model.queue)},
            {"compute_input", ToJson(model.compute_input)},
            {"compute_infer", ToJson(model.compute_infer)},
            {"compute_output", ToJson(model.compute_output)},
            {"cache_hit", none},
            {"cache_miss", none}}},
          {"batch_stats", std::move(batches)}};
}

std::unexpected<Error> Wrong(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// An object; an empty body is one without members.
Result<Json> ParseObject(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == body.npos) return Json::object();
  Result<Json> json = ParseJson(body, {.bytes = kMostControlBytes, .values = kMostControlValues});
  if (!json) return Wrong(fmt::format("the body is not JSON: {}", json.error().message));
  if (!json->is_object()) return Wrong("the body is not a JSON object");
  return json;
}

Result<Json> Parameters(std::string_view body) {
  Json json = TRY(ParseObject(body));
  const auto at = json.find("parameters");
  if (at == json.end()) return Json::object();
  if (!at->is_object()) return Wrong("\"parameters\" is not a JSON object");
  return std::move(*at);
}

Result<uint64_t> Unsigned(const Json& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end()) return Wrong(fmt::format("\"{}\" is missing", key));
  if (!at->is_number_unsigned()) return Wrong(fmt::format("\"{}\" is not a whole number from 0 on", key));
  return at->get<uint64_t>();
}

}  // namespace

Json ToJson(const ServerMetadata& server) {
  return {{"name", server.name}, {"version", server.version}, {"extensions", server.extensions}};
}

Json ToJson(const ModelMetadata& model) {
  return {{"name", model.name},
          {"versions", model.versions},
          {"platform", model.platform},
          {"inputs", Tensors(model.inputs)},
          {"outputs", Tensors(model.outputs)}};
}

Json ToJson(const std::vector<ModelStatistics>& statistics) {
  Json list = Json::array();
  for (const ModelStatistics& model : statistics) list.push_back(ToJson(model));
  return {{"model_stats", std::move(list)}};
}

Json ToJson(const std::vector<IndexEntry>& index) {
  Json list = Json::array();
  for (const IndexEntry& entry : index) {
    Json json = {{"name", entry.name}};
    if (!entry.version.empty()) json["version"] = entry.version;
    if (!entry.state.empty()) json["state"] = entry.state;
    if (!entry.reason.empty()) json["reason"] = entry.reason;
    list.push_back(std::move(json));
  }
  return list;
}

Json ToJson(const std::vector<Region>& regions) {
  Json list = Json::array();
  for (const Region& region : regions) {
    list.push_back({{"name", region.name},
                    {"key", region.key},
                    {"offset", region.offset},
                    {"byte_size", region.byte_size}});
  }
  return list;
}

Json ToJson(const std::vector<CudaRegion>& regions) {
  Json list = Json::array();
  for (const CudaRegion& region : regions)
    list.push_back({{"name", region.name}, {"device_id", region.device}, {"byte_size", region.byte_size}});
  return list;
}

Result<bool> ParseIndexBody(std::string_view body) {
  const Json json = TRY(ParseObject(body));
  const auto at = json.find("ready");
  if (at == json.end()) return false;
  if (!at->is_boolean()) return Wrong("\"ready\" is neither true nor false");
  return at->get<bool>();
}

Result<std::string> ParseLoadBody(std::string_view body) {
  const Json parameters = TRY(Parameters(body));
  std::string config;
  for (const auto& [key, value] : parameters.items()) {
    const std::string* const text = value.is_string() ? &value.get_ref<const std::string&>() : nullptr;
    TRY_STATUS(SetLoadParameter(key, text, config));
  }
  return config;
}

Status ParseUnloadBody(std::string_view body) {
  const Json parameters = TRY(Parameters(body));
  for (const auto& [key, value] : parameters.items())
    TRY_STATUS(CheckUnloadParameter(key, value.is_boolean()));
  return {};
}

Result<Region> ParseRegionBody(const std::string& name, std::string_view body) {
  const Json json = TRY(ParseObject(body));
  Region region{.name = name};
  const auto key = json.find("key");
  if (key == json.end() || !key->is_string())
    return Wrong("\"key\", the name of the shared memory, is missing");
  region.key = key->get<std::string>();
  if (json.contains("offset")) region.offset = TRY(Unsigned(json, "offset"));
  region.byte_size = TRY(Unsigned(json, "byte_size"));
  return region;
}

Result<CudaRegion> ParseCudaRegionBody(const std::string& name, std::string_view body) {
  constexpr uint64_t kMostDevices = 1 << 16;
  const Json json = TRY(ParseObject(body));
  CudaRegion region{.name = name};
  const auto handle = json.find("raw_handle");
  const bool has_text =
      handle != json.end() && handle->is_object() && handle->contains("b64") && (*handle)["b64"].is_string();
  if (!has_text) return Wrong("\"raw_handle\", an object with the memory's handle as \"b64\", is missing");
  const std::string text = (*handle)["b64"].get<std::string>();
  region.handle.resize(DecodedBytes(text));
  if (!DecodeBase64(text, region.handle)) return Wrong("\"b64\" of \"raw_handle\" is not base64");
  const uint64_t device = json.contains("device_id") ? TRY(Unsigned(json, "device_id")) : 0;
  if (device >= kMostDevices) return Wrong(fmt::format("\"device_id\" {} is no GPU's", device));
  region.device = static_cast<int64_t>(device);
  region.byte_size = TRY(Unsigned(json, "byte_size"));
  return region;
}

}  // namespace weir::oip
