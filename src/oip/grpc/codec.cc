#include "oip/grpc/codec.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "oip/grpc/proto_reader.h"
#include "oip/infer_rules.h"

namespace weir::oip {
namespace {

constexpr uint32_t Length(uint32_t number) { return Tag(number, WireType::kLength); }
constexpr uint32_t Varint(uint32_t number) { return Tag(number, WireType::kVarint); }
constexpr uint32_t kTensors = 5;  // of both messages: their inputs, or outputs

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void AppendLength(uint32_t number, size_t size, std::string& out) {
  AppendVarint(Length(number), out);
  AppendVarint(size, out);
}

// Writes nothing for an empty text, as proto3 has it.
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

// As parameters, the map that is field `number`.
void AppendRegion(uint32_t number, const RegionPart& region, std::string& message) {
  AppendParameter(number, "shared_memory_region", region.region, message);
  if (region.offset != 0)
    AppendParameter(number, "shared_memory_offset", static_cast<int64_t>(region.offset), message);
  AppendParameter(number, "shared_memory_byte_size", static_cast<int64_t>(region.byte_size), message);
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
  if (region) AppendRegion(4, *region, message);
  AppendMessage(kTensors, message, out);
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
const RequestedOutput* FindRequested(std::span<const RequestedOutput> wishes, std::string_view name,
                                     size_t likely) {
  if (likely < wishes.size() && wishes[likely].name == name) return &wishes[likely];
  const auto found = std::ranges::find(wishes, name, &RequestedOutput::name);
  return found == wishes.end() ? nullptr : &*found;
}

}  // namespace

Slices WriteGrpcResponse(const infer::Response& response, std::span<const RequestedOutput> outputs) {
  PieceWriter writer;
  std::string& text = writer.text();
  text.reserve(ExpectedSize(response.outputs));
  AppendText(1, response.model, text);
  AppendText(2, response.version, text);
  AppendText(3, response.id, text);
  if (response.durations) {
    for (const DurationParameter& parameter : DurationParameters())
      AppendParameter(4, parameter.name, int64_t{((*response.durations).*parameter.part).count()}, text);
  }
  std::string scratch;
  std::vector<bool> in_region(response.outputs.size());
  for (size_t i = 0; i < response.outputs.size(); ++i) {
    const RequestedOutput* const wish = FindRequested(outputs, response.outputs[i].name, i);
    in_region[i] = wish && wish->region;
    AppendTensor(response.outputs[i], in_region[i] ? wish->region : std::nullopt, scratch, text);
  }
  // One for every output: clients count them.
  for (size_t i = 0; i < response.outputs.size(); ++i)
    writer.AppendRaw(6, in_region[i] ? Bytes() : response.outputs[i].data);
  return writer.Take();
}

Slices WriteGrpcRequest(const infer::Request& request, const infer::RequestForm& form) {
  PieceWriter writer;
  std::string& text = writer.text();
  text.reserve(ExpectedSize(request.inputs));
  AppendText(1, request.model, text);
  AppendText(2, request.version, text);
  AppendText(3, request.id, text);
  for (const auto& [name, value] : request.parameters) AppendParameter(4, name, value, text);
  if (request.priority != 0) AppendParameter(4, "priority", static_cast<uint64_t>(request.priority), text);
  if (request.durations) AppendParameter(4, kDurations, true, text);
  std::string scratch;
  const auto region_of = [&](size_t input) {
    return input < form.input_regions.size() ? form.input_regions[input] : std::nullopt;
  };
  for (size_t i = 0; i < request.inputs.size(); ++i)
    AppendTensor(request.inputs[i], region_of(i), scratch, text);
  for (const std::string& name : request.outputs) {
    scratch.clear();
    AppendText(1, name, scratch);
    if (const auto region = form.output_regions.find(name); region != form.output_regions.end())
      AppendRegion(2, region->second, scratch);
    AppendMessage(6, scratch, text);
  }
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (!region_of(i)) writer.AppendRaw(7, request.inputs[i].data);
  }
  return writer.Take();
}

}  // namespace weir::oip
