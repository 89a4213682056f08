#include "model/config.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "infer/choices.h"
#include "infer/device.h"
#include "model/config_keys.h"
#include "model/config_message.h"

namespace weir::model {
namespace {

using google::protobuf::TextFormat;

constexpr size_t kMaxText = 16 << 20;
constexpr size_t kMaxJsonValues = 4097;  // itself, members and items, however deep
constexpr size_t kMaxRank = 64;
constexpr int kMaxNesting = 32;
constexpr std::array<std::string_view, 3> kBackends = {"onnxruntime", "openvino", "emulated"};
constexpr std::array<std::string_view, 13> kParameters = {"engine",
                                                          "device",
                                                          "preprocess",
                                                          "cuda_graph",
                                                          "gpu_memory_mb",
                                                          "precision",
                                                          "threads",
                                                          "streams",
                                                          "cpus",
                                                          "identities",
                                                          "identities_false_alarms",
                                                          "identities_threshold",
                                                          "identities_best"};
// Parameters that a server adds to the configuration it reports; clients may send them back.
constexpr std::array kToldParameters = {"recipe", "labels", "precision_in_force", "threads_in_force"};

std::unexpected<Error> Unsupported(std::string message) {
  return Fail(ErrorCode::kUnsupported, std::move(message));
}
std::unexpected<Error> Invalid(std::string message) { return InvalidConfig(std::move(message)); }

// The text behind the byte order mark that some editors put in front of it.
Result<std::string_view> WithoutMark(std::string_view text) {
  constexpr std::string_view kUtf8 = "\xEF\xBB\xBF", kLittle16 = "\xFF\xFE", kBig16 = "\xFE\xFF";
  if (text.starts_with(kUtf8)) return text.substr(kUtf8.size());
  if (text.starts_with(kLittle16) || text.starts_with(kBig16))
    return Invalid("is text in UTF-16: save it as UTF-8");
  return text;
}

// "line 3: " where `value` stands in `text` in quotes; empty where it does not.
std::string LineOf(std::string_view text, std::string_view value) {
  const size_t at = text.find(fmt::format("\"{}\"", value));
  if (at == std::string_view::npos) return "";
  return fmt::format("line {}: ", 1 + std::ranges::count(text.substr(0, at), '\n'));
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

// Faults come back as errors; the library would also write them to standard error, which may be full.
void KeepLibraryQuiet() {
  static const bool once = (google::protobuf::SetLogHandler(nullptr), true);
  static_cast<void>(once);
}

Result<pb::ModelConfig> ParseText(std::string_view text) {
  if (text.size() > kMaxText) return Invalid("larger than 16 MiB");
  KeepLibraryQuiet();
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

Result<pb::ModelConfig> ParseJsonText(std::string_view text) {
  const Result<Json> json = ParseJson(text, {.bytes = kMaxText, .values = kMaxJsonValues});
  if (!json) return Invalid(json.error().message);
  TRY_STATUS(CheckConfigKeys(*json));
  KeepLibraryQuiet();
  pb::ModelConfig message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(text), &message, options);
  if (status.ok()) return message;
  return Invalid(std::string(status.message().data(), status.message().size()));
}

template <typename Dims>
Result<infer::Shape> ShapeOf(const Dims& dims, int max_batch) {
  infer::Shape shape;
  if (max_batch > 0) shape.push_back(-1);
  for (const int64_t dim : dims) {
    if (dim < 1 && dim != -1)
      return Invalid(fmt::format("has a dimension of {}; it must be at least 1, or -1", dim));
    shape.push_back(dim);
  }
  return shape;
}

// `message` is a ModelInput or a ModelOutput.
template <typename T>
Result<infer::TensorInfo> InfoOf(const T& message, std::string_view kind, int max_batch) {
  if (message.name().empty()) return Invalid(fmt::format("an {} has no name", kind));
  const std::string what = fmt::format("{} \"{}\"", kind, message.name());
  if (static_cast<size_t>(message.dims_size()) >= kMaxRank) return Invalid(what + " has too many dims");
  infer::TensorInfo info{
      .name = message.name(), .dtype = TRY(DTypeOf(message.data_type(), what)), .shape = {}};
  info.shape = TRY_CONTEXT(ShapeOf(message.dims(), max_batch), what);
  return info;
}

// Which parts of a shape stand between its free dimensions: the products that a reshape must keep.
Result<std::vector<int64_t>> FixedParts(const infer::Shape& shape) {
  std::vector<int64_t> parts{1};
  for (const int64_t dim : shape) {
    if (dim < 0) {
      parts.push_back(1);
    } else if (__builtin_mul_overflow(parts.back(), dim, &parts.back())) {
      return Invalid("has a shape that is too large");
    }
  }
  return parts;
}

// `message` is a ModelInput or a ModelOutput, `info` what was read of it.
template <typename T>
Result<std::optional<infer::Shape>> ReshapeOf(const T& message, const infer::TensorInfo& info,
                                              int max_batch) {
  if (!message.has_reshape()) return std::nullopt;
  const std::string what = fmt::format("the reshape of \"{}\"", info.name);
  if (static_cast<size_t>(message.reshape().shape_size()) >= kMaxRank)
    return Invalid(what + " has too many dims");
  infer::Shape shape = TRY_CONTEXT(ShapeOf(message.reshape().shape(), max_batch), what);
  if (TRY_CONTEXT(FixedParts(info.shape), what) != TRY_CONTEXT(FixedParts(shape), what)) {
    return Invalid(fmt::format("{} to {} does not keep the elements of {}", what, infer::ToString(shape),
                               infer::ToString(info.shape)));
  }
  return shape;
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
    tensor.reshape = TRY(ReshapeOf(input, tensor.info, config.max_batch));
    tensor.optional = input.optional();
    if (input.format() == pb::ModelInput::FORMAT_NHWC) tensor.format = dataset::Layout::kNhwc;
    if (input.format() == pb::ModelInput::FORMAT_NCHW) tensor.format = dataset::Layout::kNchw;
    config.inputs.push_back(std::move(tensor));
  }
  for (const auto& output : message.output()) {
    ConfigTensor tensor{.info = TRY(InfoOf(output, "output", config.max_batch)),
                        .label_filename = output.label_filename()};
    tensor.reshape = TRY(ReshapeOf(output, tensor.info, config.max_batch));
    config.outputs.push_back(std::move(tensor));
  }
  TRY_STATUS(CheckNamesDiffer(config.inputs, "input"));
  return CheckNamesDiffer(config.outputs, "output");
}

// `text` is where the message came from: faults name their line in it.
Result<std::string> BackendOf(const pb::ModelConfig& message, std::string_view text) {
  if (!message.platform().empty() && message.platform() != "onnxruntime_onnx") {
    return Unsupported(
        fmt::format("{}platform \"{}\" is not supported; use \"onnxruntime_onnx\", or name a backend",
                    LineOf(text, message.platform()), message.platform()));
  }
  if (message.backend().empty()) return std::string(message.platform().empty() ? "" : "onnxruntime");
  if (std::ranges::find(kBackends, message.backend()) == kBackends.end()) {
    return Unsupported(fmt::format("{}backend \"{}\" is not supported; use {}",
                                   LineOf(text, message.backend()), message.backend(),
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

template <typename Value, size_t kCount>
Status CheckWord(const std::string& key, const std::string& text, const Choices<Value, kCount>& choices) {
  if (FindChoice(choices, text)) return {};
  return Invalid(fmt::format("parameter \"{}\" is \"{}\"; it must be {}", key, text, ListOf(choices)));
}

Status ReadParameters(const pb::ModelConfig& message, std::string_view text, Config& config) {
  for (const auto& [key, value] : message.parameters()) {
    if (std::ranges::find(kParameters, key) == kParameters.end()) {
      return Unsupported(fmt::format("{}parameter \"{}\" is not supported; those that are: {}",
                                     LineOf(text, key), key, fmt::join(kParameters, ", ")));
    }
    if (key == "threads" || key == "streams" || key == "gpu_memory_mb")
      TRY_STATUS(CheckCount(key, value.string_value()));
    if (key == "cpus") TRY_STATUS(ParseCpus(value.string_value()));
    if (key == "device")
      if (const auto devices = infer::ParseDevices(value.string_value()); !devices)
        return Invalid(fmt::format("parameter \"device\": {}", devices.error().message));
    if (key == "preprocess") TRY_STATUS(CheckWord(key, value.string_value(), infer::kPreprocess));
    if (key == "cuda_graph") TRY_STATUS(CheckWord(key, value.string_value(), infer::kOffOn));
    config.parameters[key] = value.string_value();
  }
  return {};
}

Status ReadVersionPolicy(const pb::ModelConfig& message, Config& config) {
  const pb::ModelVersionPolicy& policy = message.version_policy();
  if (policy.has_all()) config.versions = AllVersions{};
  if (policy.has_latest()) {
    const uint32_t count = policy.latest().num_versions();
    if (count == 0) return Invalid("version_policy latest has a num_versions of 0; it must be at least 1");
    config.versions = LatestVersions{static_cast<int>(std::min<uint32_t>(count, INT_MAX))};
  }
  if (!policy.has_specific()) return {};
  SpecificVersions specific;
  for (const int64_t version : policy.specific().versions()) {
    if (version < 1)
      return Invalid(fmt::format("version_policy names version {}; versions count from 1", version));
    specific.versions.push_back(version);
  }
  if (specific.versions.empty()) return Invalid("version_policy specific names no version");
  config.versions = std::move(specific);
  return {};
}

Status ReadModelFile(const pb::ModelConfig& message, Config& config) {
  if (!message.default_model_filename().empty()) config.model_file = message.default_model_filename();
  const bool plain = config.model_file.find('/') == std::string::npos &&
                     !config.model_file.starts_with('.') && config.model_file.find('\0') == std::string::npos;
  if (plain) return {};
  return Invalid(
      fmt::format("default_model_filename \"{}\" is not the plain name of a file", config.model_file));
}

Result<Config> ReadMessage(const pb::ModelConfig& message, std::string_view text) {
  Config config{.name = message.name(),
                .backend = TRY(BackendOf(message, text)),
                .max_batch = message.max_batch_size()};
  if (message.has_max_batch_size()) config.max_batch_size = message.max_batch_size();
  if (config.max_batch < 0) return Invalid("max_batch_size is negative");
  TRY_STATUS(ReadTensors(message, config));
  TRY_STATUS(ReadParameters(message, text, config));
  TRY_STATUS(ReadInstanceGroups(message, config));
  TRY_STATUS(ReadVersionPolicy(message, config));
  TRY_STATUS(ReadModelFile(message, config));
  TRY_STATUS(ReadDynamicBatching(message, config));
  TRY_STATUS(ReadWarmUps(message, config));
  if (!message.SerializeToString(&config.message)) return Invalid("is too large");
  return config;
}

}  // namespace

Result<Config> ParseConfig(std::string_view bytes) {
  const std::string_view text = TRY(WithoutMark(bytes));
  return ReadMessage(TRY(ParseText(text)), text);
}

Result<Config> ParseConfigJson(std::string_view bytes) {
  const std::string_view json = TRY(WithoutMark(bytes));
  pb::ModelConfig message = TRY(ParseJsonText(json));
  for (const char* told : kToldParameters) message.mutable_parameters()->erase(told);
  return ReadMessage(message, json);
}

Result<std::vector<int>> ParseCpus(std::string_view text) {
  constexpr int kMostCpus = 4096;
  const auto fault = [&] {
    return Invalid(fmt::format("cpus \"{}\" is no list of CPUs such as \"0-3,6\"", text));
  };
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](int& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc() && value >= 0 && value < kMostCpus;
  };
  while (true) {
    int first = 0, last = 0;
    if (!number(first)) return fault();
    last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last) || last < first) return fault();
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at == end) break;
    if (*at++ != ',') return fault();
  }
  std::ranges::sort(cpus);
  const auto repeated = std::ranges::unique(cpus);
  cpus.erase(repeated.begin(), repeated.end());
  return cpus;
}

}  // namespace weir::model
