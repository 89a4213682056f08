// Reading of grpc_codec.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "oip/grpc/codec.h"
#include "oip/grpc/contents.h"
#include "oip/grpc/proto_reader.h"
#include "oip/infer_rules.h"

namespace weir::oip {
namespace {

std::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}
std::unexpected<Error> Broken() { return Bad("the message is no protobuf of its type"); }

constexpr uint32_t Length(uint32_t number) { return Tag(number, WireType::kLength); }
constexpr uint32_t Varint(uint32_t number) { return Tag(number, WireType::kVarint); }
constexpr uint32_t kContents = 5;  // of InferInputTensor and InferOutputTensor

Status ReadString(ProtoReader& reader, std::string_view what, std::string& text) {
  ProtoReader field = reader;
  if (!reader.ReadMessage(field)) return Broken();
  text.resize(field.left());
  field.Read(text.data(), text.size());
  return IsUtf8(text) ? Status() : Bad(fmt::format("{} is not UTF-8: {}", what, Quoted(text)));
}

Status ReadShape(ProtoReader& reader, uint32_t tag, infer::Shape& shape) {
  ProtoReader packed = reader;
  const bool is_packed = (tag & 7) == static_cast<uint32_t>(WireType::kLength);
  if (is_packed && !reader.ReadMessage(packed)) return Broken();
  ProtoReader& from = is_packed ? packed : reader;
  do {
    if (is_packed && packed.AtEnd()) break;
    uint64_t size = 0;
    if (!from.ReadVarint(size)) return Broken();
    if (shape.size() == kMaxRank) return Bad(fmt::format("shape has more than {} dimensions", kMaxRank));
    shape.push_back(static_cast<int64_t>(size));
  } while (is_packed);
  return {};
}

// An InferParameter; what has none of its values leaves `value` as it is.
Status ReadParameterValue(ProtoReader message, std::optional<infer::Parameter>& value) {
  while (!message.AtEnd()) {
    uint32_t tag = 0;
    if (!message.ReadTag(tag)) return Broken();
    uint64_t varint = 0;
    switch (tag) {
      case Varint(1):
        if (!message.ReadVarint(varint)) return Broken();
        value = varint != 0;
        break;
      case Varint(2):
        if (!message.ReadVarint(varint)) return Broken();
        value = static_cast<int64_t>(varint);
        break;
      case Length(3): {
        std::string text;
        TRY_STATUS(ReadString(message, "a string parameter", text));
        value = std::move(text);
        break;
      }
      case Tag(4, WireType::kFixed64): {
        double number = 0;
        if (!message.Read(&number, sizeof number)) return Broken();
        value = number;
        break;
      }
      case Varint(5):
        if (!message.ReadVarint(varint)) return Broken();
        value = varint;
        break;
      default:
        if (!message.SkipValue(tag)) return Broken();
    }
  }
  return {};
}

// Parameters in the order in which they came; of a name that comes twice, protobuf keeps the last.
using Parameters = std::map<std::string, infer::Parameter>;

// One entry of a map<string, InferParameter>.
Status ReadEntry(ProtoReader& reader, std::string& name, std::optional<infer::Parameter>& value) {
  ProtoReader entry = reader;
  if (!reader.ReadMessage(entry)) return Broken();
  while (!entry.AtEnd()) {
    uint32_t tag = 0;
    if (!entry.ReadTag(tag)) return Broken();
    if (tag == Length(1)) {
      TRY_STATUS(ReadString(entry, "a parameter's name", name));
    } else if (tag == Length(2)) {
      ProtoReader message = entry;
      if (!entry.ReadMessage(message)) return Broken();
      TRY_STATUS(ReadParameterValue(message, value));
    } else if (!entry.SkipValue(tag)) {
      return Broken();
    }
  }
  return {};
}

Status ReadParameter(ProtoReader& reader, Parameters& parameters) {
  std::string name;
  std::optional<infer::Parameter> value;
  TRY_STATUS(ReadEntry(reader, name, value));
  if (!value) return Bad(fmt::format("parameter {} has no value", Quoted(name)));
  if (parameters.size() >= kMaxParameters) return Bad(fmt::format("more than {} parameters", kMaxParameters));
  parameters.insert_or_assign(std::move(name), std::move(*value));
  return {};
}

Result<TensorParameters> Known(const Parameters& parameters) {
  TensorParameters known;
  for (const auto& [name, value] : parameters) TRY_STATUS(SetTensorParameter(name, value, known));
  return known;
}

// An InferInputTensor of a request or an InferOutputTensor of a response.
struct TensorRead {
  infer::Tensor tensor;
  std::optional<RegionPart> region;
  bool has_contents = false;  // typed ones; they are in the tensor
  Status contents;            // whether these are what the tensor says
};

Status ReadTensorMembers(ProtoReader message, TensorRead& read) {
  infer::Tensor& tensor = read.tensor;
  const ProtoReader again = message;
  Parameters parameters;
  std::string datatype;
  while (!message.AtEnd()) {
    uint32_t tag = 0;
    if (!message.ReadTag(tag)) return Broken();
    switch (tag) {
      case Length(1):
        TRY_STATUS(ReadString(message, "name", tensor.name));
        break;
      case Length(2):
        TRY_STATUS(ReadString(message, "datatype", datatype));
        break;
      case Length(3):
      case Varint(3):
        TRY_STATUS(ReadShape(message, tag, tensor.shape));
        break;
      case Length(4):
        TRY_STATUS(ReadParameter(message, parameters));
        break;
      case Length(kContents):
        read.has_contents = true;
        [[fallthrough]];
      default:
        if (!message.SkipValue(tag)) return Broken();
    }
  }
  if (datatype.empty()) return Bad("its datatype is missing");
  tensor.dtype = TRY(ReadDType(datatype));
  read.region = TRY(RegionOf(TRY(Known(parameters))));
  if (read.region && read.has_contents) return Bad("has contents, and shared_memory_region as well");
  // A message that has raw ones, too, is refused for that, whatever these are.
  if (read.has_contents) read.contents = ReadTypedContents(again, kContents, tensor);
  return {};
}

Result<TensorRead> ReadTensor(ProtoReader& reader, std::string_view kind, size_t index) {
  ProtoReader message = reader;
  if (!reader.ReadMessage(message)) return Broken();
  if (index == kMaxTensors) return Bad(fmt::format("more than {} {}s", kMaxTensors, kind));
  TensorRead read;
  if (auto status = ReadTensorMembers(message, read); !status) {
    return Context(fmt::format("{} {}", kind, Quoted(read.tensor.name)), std::move(status).error());
  }
  return read;
}

Result<RequestedOutput> ReadRequestedOutput(ProtoReader& reader) {
  ProtoReader message = reader;
  if (!reader.ReadMessage(message)) return Broken();
  std::string name;
  Parameters parameters;
  while (!message.AtEnd()) {
    uint32_t tag = 0;
    if (!message.ReadTag(tag)) return Broken();
    if (tag == Length(1)) {
      TRY_STATUS(ReadString(message, "an output's name", name));
    } else if (tag == Length(2)) {
      TRY_STATUS(ReadParameter(message, parameters));
    } else if (!message.SkipValue(tag)) {
      return Broken();
    }
  }
  auto wish = [&]() -> Result<RequestedOutput> { return WishOf(name, TRY(Known(parameters)), true); }();
  if (!wish) return Context("output " + Quoted(name), std::move(wish).error());
  wish->binary = true;
  return wish;
}

// Gives every tensor that has neither typed contents nor a region the next of the raw ones. kPassOver: holds
// their sizes against one another alone, so that no tensor in several pieces is joined.
Status AssignRaw(std::span<TensorRead> tensors, std::span<const ProtoReader> raw, std::string_view kind,
                 std::string_view model, infer::RequestForm::Outputs wanted) {
  size_t next = 0;
  for (TensorRead& read : tensors) {
    const auto bad = [&](Error error) {
      return Context(fmt::format("{} {}", kind, Quoted(read.tensor.name)), std::move(error));
    };
    if (read.region) continue;
    if (read.has_contents) {
      if (!raw.empty()) {  // these words are what clients of Triton look for
        return Bad(
            fmt::format("contents field must not be specified when using raw_{}_contents for {} for "
                        "model {}",
                        kind, Quoted(read.tensor.name), Quoted(model)));
      }
      if (!read.contents) return bad(read.contents.error());
      continue;
    }
    const bool is_sized = read.tensor.dtype != infer::DType::kBytes;
    if (next < raw.size() && is_sized && wanted == infer::RequestForm::Outputs::kPassOver) {
      const Status fits = CheckSize(read.tensor.dtype, TRY(CountElements(read.tensor)), raw[next++].left());
      if (!fits) return bad(fits.error());
      continue;
    }
    if (next < raw.size()) {
      read.tensor.data = raw[next++].Take(std::max<size_t>(infer::ByteSize(read.tensor.dtype), 1));
    } else if (!raw.empty() || TRY(CountElements(read.tensor)) != 0) {
      return bad({ErrorCode::kInvalidArgument,
                  fmt::format("has no data: the message has {} raw tensors", raw.size())});
    }
    if (auto status = CheckData(read.tensor); !status) return bad(std::move(status).error());
  }
  if (next == raw.size()) return {};
  return Bad(fmt::format("{} raw tensors are left over after the last {}", raw.size() - next, kind));
}

Status ReadRaw(ProtoReader& message, std::vector<ProtoReader>& raw) {
  raw.push_back(message);
  if (!message.ReadMessage(raw.back())) return Broken();
  if (raw.size() > kMaxTensors) return Bad(fmt::format("more than {} raw tensors", kMaxTensors));
  return {};
}

Result<InferRequest> ReadRequest(ProtoReader message) {
  InferRequest result{.protocol = Protocol::kGrpc};
  infer::Request& request = result.request;
  Parameters parameters;
  std::vector<TensorRead> inputs;
  std::vector<ProtoReader> raw;
  while (!message.AtEnd()) {
    uint32_t tag = 0;
    if (!message.ReadTag(tag)) return Broken();
    switch (tag) {
      case Length(1):
        TRY_STATUS(ReadString(message, "model_name", request.model));
        break;
      case Length(2):
        TRY_STATUS(ReadString(message, "model_version", request.version));
        break;
      case Length(3):
        TRY_STATUS(ReadString(message, "id", request.id));
        break;
      case Length(4):
        TRY_STATUS(ReadParameter(message, parameters));
        break;
      case Length(5):
        inputs.push_back(TRY(ReadTensor(message, "input", inputs.size())));
        break;
      case Length(6):
        if (result.outputs.size() == kMaxTensors)
          return Bad(fmt::format("more than {} outputs", kMaxTensors));
        result.outputs.push_back(TRY(ReadRequestedOutput(message)));
        break;
      case Length(7):
        TRY_STATUS(ReadRaw(message, raw));
        break;
      default:
        if (!message.SkipValue(tag)) return Broken();
    }
  }
  TRY_STATUS(AssignRaw(inputs, raw, "input", request.model, infer::RequestForm::Outputs::kRead));
  for (auto& [name, value] : parameters) TRY_STATUS(SetRequestParameter(name, std::move(value), result));
  request.inputs.reserve(inputs.size());
  for (TensorRead& input : inputs) {
    if (input.region) TRY_STATUS(CheckRegion(input.tensor, *input.region));
    request.inputs.push_back(std::move(input.tensor));
    result.input_regions.push_back(std::move(input.region));
  }
  request.outputs.reserve(result.outputs.size());
  for (const RequestedOutput& wish : result.outputs) request.outputs.push_back(wish.name);
  result.binary_by_default = true;
  TRY_STATUS(CheckNames(result));
  return result;
}

// Passes over parameters of other servers' responses that are unknown here.
Status ReadResponseParameter(ProtoReader& reader, ResponseParameters& parameters) {
  std::string name;
  std::optional<infer::Parameter> value;
  TRY_STATUS(ReadEntry(reader, name, value));
  return value ? parameters.Set(name, *value) : Status();
}

Result<infer::Response> ReadResponse(ProtoReader message, infer::RequestForm::Outputs wanted) {
  infer::Response response;
  ResponseParameters parameters;
  std::vector<TensorRead> outputs;
  std::vector<ProtoReader> raw;
  while (!message.AtEnd()) {
    uint32_t tag = 0;
    if (!message.ReadTag(tag)) return Broken();
    switch (tag) {
      case Length(1):
        TRY_STATUS(ReadString(message, "model_name", response.model));
        break;
      case Length(2):
        TRY_STATUS(ReadString(message, "model_version", response.version));
        break;
      case Length(3):
        TRY_STATUS(ReadString(message, "id", response.id));
        break;
      case Length(4):
        TRY_STATUS(ReadResponseParameter(message, parameters));
        break;
      case Length(5):
        outputs.push_back(TRY(ReadTensor(message, "output", outputs.size())));
        break;
      case Length(6):
        TRY_STATUS(ReadRaw(message, raw));
        break;
      default:
        if (!message.SkipValue(tag)) return Broken();
    }
  }
  response.durations = TRY(parameters.Durations());
  if (raw.size() == outputs.size()) {  // an output in a region has an empty one
    std::vector<ProtoReader> sent;
    for (size_t i = 0; i < raw.size(); ++i) {
      if (!outputs[i].region) sent.push_back(raw[i]);
    }
    raw = std::move(sent);
  }
  TRY_STATUS(AssignRaw(outputs, raw, "output", response.model, wanted));
  if (wanted == infer::RequestForm::Outputs::kPassOver) return response;
  response.outputs.reserve(outputs.size());
  for (TensorRead& output : outputs) response.outputs.push_back(std::move(output.tensor));
  return response;
}

}  // namespace

Result<InferRequest> ParseGrpcRequest(std::span<const Bytes> message) {
  return ReadRequest(ProtoReader(message));
}

Result<infer::Response> ParseGrpcResponse(std::span<const Bytes> message,
                                          infer::RequestForm::Outputs outputs) {
  return ReadResponse(ProtoReader(message), outputs);
}

}  // namespace weir::oip
