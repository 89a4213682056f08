#include "model/config.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <utility>

#include "model/model_config.pb.h"

namespace weir::model {
namespace {

namespace pb = config;
using google::protobuf::TextFormat;

constexpr size_t kMaxText = 16 << 20;
constexpr size_t kMaxRank = 64;
constexpr int kMaxNesting = 32;
constexpr std::array<std::string_view, 3> kBackends = {"onnxruntime", "openvino", "emulated"};
constexpr std::array<std::string_view, 4> kParameters = {"engine", "precision", "threads", "streams"};

std::unexpected<Error> Unsupported(std::string message) {
  return Fail(ErrorCode::kUnsupported, std::move(message));
}
std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Keeps the parser's first error, which it counts lines of from 0.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int, const std::string& message) override {
    if (error_.message.empty()) error_ = Translate(line + 1, message);
  }
  void AddWarning(int, int, const std::string&) override {}
  const Error& error() const { return error_; }

 private:
  static Error Translate(int line, const std::string& message) {
    constexpr std::string_view kNoField = " has no field named \"";
    if (const size_t at = message.find(kNoField); at != std::string::npos) {
      const size_t begin = at + kNoField.size();
      const std::string field = message.substr(begin, message.find('"', begin) - begin);
      return {ErrorCode::kUnsupported, fmt::format("line {}: {} is not supported", line, field)};
    }
    constexpr std::string_view kNoValue = "Unknown enumeration value of \"";
    if (message.starts_with(kNoValue)) {
      const std::string value =
          message.substr(kNoValue.size(), message.find('"', kNoValue.size()) - kNoValue.size());
      return {ErrorCode::kUnsupported, fmt::format("line {}: {} is not supported", line, value)};
    }
    return {ErrorCode::kInvalidArgument, fmt::format("line {}: {}", line, message)};
  }

  Error error_;
};

Result<pb::ModelConfig> ParseText(std::string_view text) {
  if (text.size() > kMaxText) return Invalid("larger than 16 MiB");
  FirstError errors;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(kMaxNesting);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  pb::ModelConfig message;
  if (!parser.Parse(&stream, &message)) {
    return errors.error().message.empty() ? Invalid("is not protobuf text") : std::unexpected(errors.error());
  }
  return message;
}

Result<infer::DType> DTypeOf(pb::DataType type, const std::string& what) {
  using infer::DType;
  switch (type) {
    case pb::TYPE_BOOL:
      return DType::kBool;
    case pb::TYPE_UINT8:
      return DType::kUint8;
    case pb::TYPE_UINT16:
      return DType::kUint16;
    case pb::TYPE_UINT32:
      return DType::kUint32;
    case pb::TYPE_UINT64:
      return DType::kUint64;
    case pb::TYPE_INT8:
      return DType::kInt8;
    case pb::TYPE_INT16:
      return DType::kInt16;
    case pb::TYPE_INT32:
      return DType::kInt32;
    case pb::TYPE_INT64:
      return DType::kInt64;
    case pb::TYPE_FP16:
      return DType::kFp16;
    case pb::TYPE_FP32:
      return DType::kFp32;
    case pb::TYPE_FP64:
      return DType::kFp64;
    case pb::TYPE_STRING:
      return DType::kBytes;
    case pb::TYPE_BF16:
      return DType::kBf16;
    default:
      return Invalid(what + " has no data_type");
  }
}

// `message` is a ModelInput or a ModelOutput.
template <typename T>
Result<infer::TensorInfo> InfoOf(const T& message, std::string_view kind, int max_batch) {
  if (message.name().empty()) return Invalid(fmt::format("an {} has no name", kind));
  const std::string what = fmt::format("{} \"{}\"", kind, message.name());
  if (message.dims().empty() && max_batch == 0) return Invalid(what + " has no dims");
  if (static_cast<size_t>(message.dims_size()) >= kMaxRank) return Invalid(what + " has too many dims");
  infer::TensorInfo info{
      .name = message.name(), .dtype = TRY(DTypeOf(message.data_type(), what)), .shape = {}};
  if (max_batch > 0) info.shape.push_back(-1);
  for (const int64_t dim : message.dims()) {
    if (dim < 1 && dim != -1)
      return Invalid(fmt::format("{} has a dimension of {}; it must be at least 1, or -1", what, dim));
    info.shape.push_back(dim);
  }
  return info;
}

Status CheckNamesDiffer(const std::vector<ConfigTensor>& tensors, std::string_view kind) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (tensors[i].info.name == tensors[j].info.name) {
        return Invalid(fmt::format("{} \"{}\" is there twice", kind, tensors[i].info.name));
      }
    }
  }
  return {};
}

Status ReadTensors(const pb::ModelConfig& message, Config& config) {
  constexpr int kMostTensors = 4096;
  if (message.input_size() > kMostTensors || message.output_size() > kMostTensors)
    return Invalid("too many inputs or outputs");
  for (const auto& input : message.input()) {
    ConfigTensor tensor{.info = TRY(InfoOf(input, "input", config.max_batch))};
    if (input.format() == pb::ModelInput::FORMAT_NHWC) tensor.format = data::Layout::kNhwc;
    if (input.format() == pb::ModelInput::FORMAT_NCHW) tensor.format = data::Layout::kNchw;
    config.inputs.push_back(std::move(tensor));
  }
  for (const auto& output : message.output()) {
    config.outputs.push_back(
        {.info = TRY(InfoOf(output, "output", config.max_batch)), .label_filename = output.label_filename()});
  }
  TRY_STATUS(CheckNamesDiffer(config.inputs, "input"));
  return CheckNamesDiffer(config.outputs, "output");
}

Result<std::string> BackendOf(const pb::ModelConfig& message) {
  if (!message.platform().empty() && message.platform() != "onnxruntime_onnx") {
    return Unsupported(fmt::format(
        "platform \"{}\" is not supported; use \"onnxruntime_onnx\", or name a backend", message.platform()));
  }
  if (message.backend().empty()) return std::string(message.platform().empty() ? "" : "onnxruntime");
  if (std::ranges::find(kBackends, message.backend()) == kBackends.end()) {
    return Unsupported(fmt::format("backend \"{}\" is not supported; use {}", message.backend(),
                                   fmt::join(kBackends, ", ")));
  }
  return message.backend();
}

Status CheckCount(const std::string& key, const std::string& text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 0) return {};
  return Invalid(fmt::format("parameter \"{}\" is \"{}\"; it must be a whole number, 0 or more", key, text));
}

Status ReadParameters(const pb::ModelConfig& message, Config& config) {
  for (const auto& [key, value] : message.parameters()) {
    if (std::ranges::find(kParameters, key) == kParameters.end()) {
      return Unsupported(fmt::format("parameter \"{}\" is not supported; those that are: {}", key,
                                     fmt::join(kParameters, ", ")));
    }
    if (key == "threads" || key == "streams") TRY_STATUS(CheckCount(key, value.string_value()));
    config.parameters[key] = value.string_value();
  }
  int64_t instances = 0;
  for (const auto& group : message.instance_group()) {
    if (group.count() < 0) return Invalid("instance_group has a negative count");
    instances += std::max(group.count(), 1);
  }
  if (instances > INT_MAX) return Invalid("instance_group has too many instances");
  if (instances > 0) config.parameters.emplace("streams", fmt::format("{}", instances));
  return {};
}

}  // namespace

Result<Config> ParseConfig(std::string_view text) {
  const pb::ModelConfig message = TRY(ParseText(text));
  Config config{
      .name = message.name(), .backend = TRY(BackendOf(message)), .max_batch = message.max_batch_size()};
  if (config.max_batch < 0) return Invalid("max_batch_size is negative");
  TRY_STATUS(ReadTensors(message, config));
  TRY_STATUS(ReadParameters(message, config));
  for (const int64_t version : message.version_policy().specific().versions()) {
    if (version < 1)
      return Invalid(fmt::format("version_policy names version {}; versions count from 1", version));
    config.versions.push_back(version);
  }
  if (message.version_policy().has_specific() && config.versions.empty())
    return Invalid("version_policy specific names no version");
  if (!message.default_model_filename().empty()) config.model_file = message.default_model_filename();
  const bool plain = config.model_file.find('/') == std::string::npos &&
                     !config.model_file.starts_with('.') && config.model_file.find('\0') == std::string::npos;
  if (!plain)
    return Invalid(
        fmt::format("default_model_filename \"{}\" is not the plain name of a file", config.model_file));
  return config;
}

}  // namespace weir::model
