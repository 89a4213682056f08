#include "wire/grpc_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "wire/grpc_contents.h"
#include "wire/infer_rules.h"
#include "wire/proto_reader.h"
#include "wire/text.h"

namespace weir::wire {
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
Status ReadParameter(ProtoReader& reader, Parameters& parameters) {
  ProtoReader entry = reader;
  if (!reader.ReadMessage(entry)) return Broken();
  std::string name;
  std::optional<infer::Parameter> value;
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
  const int64_t elements = TRY(CountElements(tensor));
  if (read.region) {
    if (read.has_contents) return Bad("has contents, and shared_memory_region as well");
    return CheckSize(tensor.dtype, elements, read.region->byte_size);
  }
  return read.has_contents ? ReadTypedContents(again, kContents, tensor) : Status();
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

Result<OutputWish> ReadWish(ProtoReader& reader) {
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
  auto wish = [&]() -> Result<OutputWish> { return WishOf(name, TRY(Known(parameters)), true); }();
  if (!wish) return Context("output " + Quoted(name), std::move(wish).error());
  wish->binary = true;
  return wish;
}

// Gives every tensor that has neither typed contents nor a region the next of the raw ones.
Status AssignRaw(std::span<TensorRead> tensors, std::span<const ProtoReader> raw, std::string_view kind) {
  size_t next = 0;
  for (TensorRead& read : tensors) {
    const auto bad = [&](Error error) {
      return Context(fmt::format("{} {}", kind, Quoted(read.tensor.name)), std::move(error));
    };
    if (read.region) continue;
    if (read.has_contents) {
      if (raw.empty()) continue;
      return bad({ErrorCode::kInvalidArgument, "has typed contents, and the message raw ones"});
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
        result.outputs.push_back(TRY(ReadWish(message)));
        break;
      case Length(7):
        TRY_STATUS(ReadRaw(message, raw));
        break;
      default:
        if (!message.SkipValue(tag)) return Broken();
    }
  }
  TRY_STATUS(AssignRaw(inputs, raw, "input"));
  for (auto& [name, value] : parameters) TRY_STATUS(SetRequestParameter(name, std::move(value), result));
  request.inputs.reserve(inputs.size());
  for (TensorRead& input : inputs) {
    request.inputs.push_back(std::move(input.tensor));
    result.input_regions.push_back(std::move(input.region));
  }
  request.outputs.reserve(result.outputs.size());
  for (const OutputWish& wish : result.outputs) request.outputs.push_back(wish.name);
  result.binary_by_default = true;
  TRY_STATUS(CheckNames(result));
  return result;
}

Result<infer::Response> ReadResponse(ProtoReader message) {
  infer::Response response;
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
  TRY_STATUS(AssignRaw(outputs, raw, "output"));
  response.outputs.reserve(outputs.size());
  for (TensorRead& output : outputs) response.outputs.push_back(std::move(output.tensor));
  return response;
}

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void AppendLength(uint32_t number, size_t size, std::string& out) {
  AppendVarint(Length(number), out);
  AppendVarint(size, out);
}

// What is empty is not written, as proto3 has it.
void AppendText(uint32_t number, std::string_view text, std::string& out) {
  if (text.empty()) return;
  AppendLength(number, text.size(), out);
  out += text;
}

void AppendMessage(uint32_t number, std::string_view message, std::string& out) {
  AppendLength(number, message.size(), out);
  out += message;
}

// An InferParameter.
std::string ParameterValue(const infer::Parameter& value) {
  std::string out;
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) {
          AppendVarint(Varint(1), out);
          AppendVarint(v, out);
        } else if constexpr (std::is_same_v<T, int64_t>) {
          AppendVarint(Varint(2), out);
          AppendVarint(static_cast<uint64_t>(v), out);
        } else if constexpr (std::is_same_v<T, uint64_t>) {
          AppendVarint(Varint(5), out);
          AppendVarint(v, out);
        } else if constexpr (std::is_same_v<T, double>) {
          AppendVarint(Tag(4, WireType::kFixed64), out);
          out.append(reinterpret_cast<const char*>(&v), sizeof v);
        } else {
          AppendMessage(3, v, out);
        }
      },
      value);
  return out;
}

// An entry of the map<string, InferParameter> that is field `number`.
void AppendParameter(uint32_t number, std::string_view name, const infer::Parameter& value,
                     std::string& out) {
  std::string entry;
  AppendText(1, name, entry);
  AppendMessage(2, ParameterValue(value), entry);
  AppendMessage(number, entry, out);
}

// An InferInputTensor or InferOutputTensor, without its data. `scratch` is for the use of this function.
void AppendTensor(const infer::Tensor& tensor, const std::optional<RegionPart>& region, std::string& scratch,
                  std::string& out) {
  std::string& message = scratch;
  message.clear();
  AppendText(1, tensor.name, message);
  AppendText(2, infer::ToString(tensor.dtype), message);
  for (const int64_t size : tensor.shape) {
    AppendVarint(Varint(3), message);  // not packed: readers take both, and no length is needed before
    AppendVarint(static_cast<uint64_t>(size), message);
  }
  if (region) {
    AppendParameter(4, "shared_memory_region", region->region, message);
    if (region->offset != 0) {
      AppendParameter(4, "shared_memory_offset", static_cast<int64_t>(region->offset), message);
    }
    AppendParameter(4, "shared_memory_byte_size", static_cast<int64_t>(region->byte_size), message);
  }
  AppendMessage(kContents, message, out);  // both messages have their tensors in field 5
}

// A message written from front to back, in which large tensors are pieces of their own and share their
// memory.
class PieceWriter {
 public:
  // Small tensors cost less as a copy than as a piece.
  static constexpr size_t kCopied = 1024;

  std::string& text() { return text_; }

  void AppendRaw(uint32_t number, const Bytes& data) {
    AppendLength(number, data.size(), text_);
    if (data.size() <= kCopied) {
      text_ += data.text();
    } else {
      cuts_.push_back({text_.size(), data});
    }
  }

  Slices Take() const {
    Slices slices;
    slices.reserve(2 * cuts_.size() + 1);
    const Bytes text = Bytes::Copy(text_);
    size_t begin = 0;
    for (const auto& [end, data] : cuts_) {
      slices.push_back(text.Slice(begin, end - begin));
      slices.push_back(data);
      begin = end;
    }
    if (begin < text.size() || slices.empty()) slices.push_back(text.Slice(begin, text.size() - begin));
    return slices;
  }

 private:
  struct Cut {
    size_t position;  // in text_: `data` comes here
    Bytes data;
  };
  std::string text_;
  std::vector<Cut> cuts_;
};

// Room for the text of this many tensors.
size_t ExpectedSize(std::span<const infer::Tensor> tensors) {
  size_t size = 128;
  for (const infer::Tensor& tensor : tensors) {
    size += 64 + (tensor.data.size() <= PieceWriter::kCopied ? tensor.data.size() : 0);
  }
  return size;
}

// Answers mostly come in the order of the wishes.
const OutputWish* FindWish(std::span<const OutputWish> wishes, std::string_view name, size_t likely) {
  if (likely < wishes.size() && wishes[likely].name == name) return &wishes[likely];
  const auto found = std::ranges::find(wishes, name, &OutputWish::name);
  return found == wishes.end() ? nullptr : &*found;
}

}  // namespace

Result<InferRequest> ParseGrpcRequest(std::span<const Bytes> message) {
  return ReadRequest(ProtoReader(message));
}

Result<infer::Response> ParseGrpcResponse(std::span<const Bytes> message) {
  return ReadResponse(ProtoReader(message));
}

Slices WriteGrpcResponse(const infer::Response& response, std::span<const OutputWish> outputs) {
  PieceWriter writer;
  std::string& text = writer.text();
  text.reserve(ExpectedSize(response.outputs));
  AppendText(1, response.model, text);
  AppendText(2, response.version, text);
  AppendText(3, response.id, text);
  std::string scratch;
  std::vector<bool> in_region(response.outputs.size());
  for (size_t i = 0; i < response.outputs.size(); ++i) {
    const OutputWish* const wish = FindWish(outputs, response.outputs[i].name, i);
    in_region[i] = wish && wish->region;
    AppendTensor(response.outputs[i], in_region[i] ? wish->region : std::nullopt, scratch, text);
  }
  for (size_t i = 0; i < response.outputs.size(); ++i) {
    if (!in_region[i]) writer.AppendRaw(6, response.outputs[i].data);
  }
  return writer.Take();
}

Slices WriteGrpcRequest(const infer::Request& request) {
  PieceWriter writer;
  std::string& text = writer.text();
  text.reserve(ExpectedSize(request.inputs));
  AppendText(1, request.model, text);
  AppendText(2, request.version, text);
  AppendText(3, request.id, text);
  for (const auto& [name, value] : request.parameters) AppendParameter(4, name, value, text);
  if (request.priority != 0) AppendParameter(4, "priority", static_cast<uint64_t>(request.priority), text);
  std::string scratch;
  for (const infer::Tensor& input : request.inputs) AppendTensor(input, std::nullopt, scratch, text);
  for (const std::string& name : request.outputs) {
    scratch.clear();
    AppendText(1, name, scratch);
    AppendMessage(6, scratch, text);
  }
  for (const infer::Tensor& input : request.inputs) writer.AppendRaw(7, input.data);
  return writer.Take();
}

}  // namespace weir::wire
