#include "oip/http/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <variant>

#include "base/text.h"
#include "oip/buffer.h"
#include "oip/http/tensor_json.h"
#include "oip/infer_rules.h"

namespace weir::oip {
namespace {

// Writes members and items with the commas between them.
class JsonWriter {
 public:
  explicit JsonWriter(size_t expected) : out_(expected) {}
  Buffer& out() { return out_; }

  void Open(char bracket) {
    Separate();
    out_.Append(bracket);
    fresh_ = true;
  }
  void Close(char bracket) {
    out_.Append(bracket);
    fresh_ = false;
  }
  // A key of ours, which needs no escapes; its value follows.
  void Key(std::string_view key) {
    Separate();
    out_.Append('"');
    out_.Append(key);
    out_.Append("\":");
    fresh_ = true;
  }
  void String(std::string_view text) {
    Separate();
    AppendJsonString(text, out_);
  }
  template <typename T>
  void Number(T value) {
    Separate();
    AppendJsonNumber(value, out_);
  }
  void Bool(bool value) {
    Separate();
    out_.Append(value ? "true" : "false");
  }

  void NamedString(std::string_view key, std::string_view text) {
    Key(key);
    String(text);
  }

 private:
  void Separate() {
    if (!fresh_) out_.Append(',');
    fresh_ = false;
  }

  Buffer out_;
  bool fresh_ = true;  // no comma before what comes next
};

void WriteParameters(const infer::Request& request, JsonWriter& json) {
  const bool all_outputs = request.outputs.empty();
  if (request.parameters.empty() && request.priority == 0 && !all_outputs && !request.durations) return;
  json.Key("parameters");
  json.Open('{');
  if (request.priority != 0) {
    json.Key("priority");
    json.Number(int64_t{request.priority});
  }
  if (all_outputs) {
    json.Key("binary_data_output");
    json.Bool(true);
  }
  if (request.durations) {
    json.Key(kDurations);
    json.Bool(true);
  }
  for (const auto& [name, value] : request.parameters) {
    json.String(name);
    json.out().Append(':');
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, bool>) {
            json.out().Append(v ? "true" : "false");
          } else if constexpr (std::is_same_v<T, std::string>) {
            AppendJsonString(v, json.out());
          } else {
            AppendJsonNumber(v, json.out());
          }
        },
        value);
  }
  json.Close('}');
}

void WriteDurations(const infer::ServerDurations& durations, JsonWriter& json) {
  json.Key("parameters");
  json.Open('{');
  for (const DurationParameter& parameter : DurationParameters()) {
    json.Key(parameter.name);
    json.Number(int64_t{(durations.*parameter.part).count()});
  }
  json.Close('}');
}

void WriteTensorHead(const infer::Tensor& tensor, JsonWriter& json) {
  json.NamedString("name", tensor.name);
  json.NamedString("datatype", infer::ToString(tensor.dtype));
  json.Key("shape");
  json.Open('[');
  for (const int64_t size : tensor.shape) json.Number(size);
  json.Close(']');
}

void WriteRegion(const RegionPart& region, JsonWriter& json) {
  json.Key("parameters");
  json.Open('{');
  json.NamedString("shared_memory_region", region.region);
  if (region.offset != 0) {
    json.Key("shared_memory_offset");
    json.Number(region.offset);
  }
  json.Key("shared_memory_byte_size");
  json.Number(region.byte_size);
  json.Close('}');
}

void WriteBinary(const infer::Tensor& tensor, JsonWriter& json, HttpBody& body) {
  json.Key("parameters");
  json.Open('{');
  json.Key("binary_data_size");
  json.Number(uint64_t{tensor.data.size()});
  json.Close('}');
  if (!tensor.data.empty()) body.parts.push_back(tensor.data);
}

// Puts the JSON before the binary parts. Spaces at its end let what follows lie on a multiple of 64 where the
// body itself does, so that the other side need not copy it.
HttpBody Finish(JsonWriter json, HttpBody body, bool binary) {
  Buffer& out = json.out();
  if (binary) {
    const size_t spaces = (64 - out.size() % 64) % 64;
    std::memset(out.Room(spaces), ' ', spaces);
    out.Advance(spaces);
    body.header_length = out.size();
  }
  body.parts.front() = std::move(out).Take();
  return body;
}

// Answers mostly come in the order of the wishes.
const RequestedOutput* FindRequested(const ResponseForm& form, std::string_view name, size_t likely) {
  if (likely < form.outputs.size() && form.outputs[likely].name == name) return &form.outputs[likely];
  const auto found = std::ranges::find(form.outputs, name, &RequestedOutput::name);
  return found == form.outputs.end() ? nullptr : &*found;
}

}  // namespace

size_t HttpBody::size() const {
  size_t size = 0;
  for (const Bytes& part : parts) size += part.size();
  return size;
}

Result<InferRequest> ParseRawHttpRequest(const Bytes& body, const infer::TensorInfo& input, bool batched) {
  const auto bad = [&](std::string message) {
    return Context("input " + Quoted(input.name), {ErrorCode::kInvalidArgument, std::move(message)});
  };
  infer::Tensor tensor{.name = input.name, .dtype = input.dtype, .shape = input.shape, .data = {}};
  if (batched && !tensor.shape.empty()) tensor.shape[0] = 1;
  const auto free = std::ranges::find(tensor.shape, -1);
  if (free != tensor.shape.end()) {
    if (std::find(free + 1, tensor.shape.end(), -1) != tensor.shape.end()) {
      return bad("has more than one free dimension: a raw request cannot say its shape");
    }
    *free = 1;
  }
  const int64_t elements = TRY_CONTEXT(CountElements(tensor), "input " + Quoted(input.name));

  if (input.dtype == infer::DType::kBytes) {
    if (elements != 1) return bad("has more than one element of BYTES: a raw request is one");
    if (body.size() > std::numeric_limits<uint32_t>::max()) return bad("is longer than 4 GiB");
    const auto length = static_cast<uint32_t>(body.size());
    tensor.data = Bytes::AllocateUninitialized(sizeof length + body.size());
    std::memcpy(tensor.data.mutable_data(), &length, sizeof length);
    if (!body.empty()) std::memcpy(tensor.data.mutable_data() + sizeof length, body.data(), body.size());
  } else {
    const size_t unit = static_cast<size_t>(elements) * infer::ByteSize(input.dtype);
    if (free != tensor.shape.end() && unit > 0) *free = static_cast<int64_t>(body.size() / unit);
    tensor.data = body;
    if (auto fits = CheckData(tensor); !fits) return bad(std::move(fits.error().message));
    if (reinterpret_cast<uintptr_t>(body.data()) % infer::ByteSize(input.dtype) != 0) {
      tensor.data = Bytes::Copy(body.span());
    }
  }
  InferRequest request;
  request.request.inputs.push_back(std::move(tensor));
  request.input_regions.emplace_back();
  request.binary_by_default = true;
  return request;
}

Result<HttpBody> WriteHttpResponse(const infer::Response& response, const ResponseForm& form) {
  const auto requested_of = [&](size_t i) { return FindRequested(form, response.outputs[i].name, i); };
  const auto is_binary = [&](const RequestedOutput* wish) {
    return wish ? wish->binary : form.binary_by_default;
  };
  size_t expected = 320 + 96 * response.outputs.size() + (response.durations ? 256 : 0);
  for (size_t i = 0; i < response.outputs.size(); ++i) {
    const RequestedOutput* const wish = requested_of(i);
    if (!is_binary(wish) && !(wish && wish->region)) expected += JsonSize(response.outputs[i]);
  }
  JsonWriter json(expected);
  HttpBody body;
  body.parts.emplace_back();  // the JSON, when it is written
  bool binary = false;
  json.Open('{');
  json.NamedString("model_name", response.model);
  json.NamedString("model_version", response.version);
  if (!response.id.empty()) json.NamedString("id", response.id);
  if (response.durations) WriteDurations(*response.durations, json);
  json.Key("outputs");
  json.Open('[');
  for (size_t i = 0; i < response.outputs.size(); ++i) {
    const infer::Tensor& tensor = response.outputs[i];
    const RequestedOutput* const wish = requested_of(i);
    json.Open('{');
    WriteTensorHead(tensor, json);
    // An output in a region has neither data nor parameters: NVIDIA's C++ client takes any for binary data.
    if (wish && wish->region) {
      json.Close('}');
      continue;
    }
    if (is_binary(wish)) {
      WriteBinary(tensor, json, body);
      binary = true;
    } else {
      json.Key("data");
      const Status written = AppendJsonData(tensor, json.out());
      if (!written) return Context("output " + Quoted(tensor.name), written.error());
    }
    json.Close('}');
  }
  json.Close(']');
  json.Close('}');
  return Finish(std::move(json), std::move(body), binary);
}

HttpBody WriteHttpRequest(const infer::Request& request, const infer::RequestForm& form) {
  JsonWriter json(320 + 128 * (request.inputs.size() + request.outputs.size()));
  HttpBody body;
  body.parts.emplace_back();
  json.Open('{');
  if (!request.id.empty()) json.NamedString("id", request.id);
  WriteParameters(request, json);
  json.Key("inputs");
  json.Open('[');
  bool binary = false;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const infer::Tensor& tensor = request.inputs[i];
    json.Open('{');
    WriteTensorHead(tensor, json);
    if (i < form.input_regions.size() && form.input_regions[i]) {
      WriteRegion(*form.input_regions[i], json);
    } else {
      WriteBinary(tensor, json, body);
      binary = true;
    }
    json.Close('}');
  }
  json.Close(']');
  if (!request.outputs.empty()) {
    json.Key("outputs");
    json.Open('[');
    for (const std::string& name : request.outputs) {
      json.Open('{');
      json.NamedString("name", name);
      if (const auto region = form.output_regions.find(name); region != form.output_regions.end()) {
        WriteRegion(region->second, json);
      } else {
        json.Key("parameters");
        json.Open('{');
        json.Key("binary_data");
        json.Bool(true);
        json.Close('}');
      }
      json.Close('}');
    }
    json.Close(']');
  }
  json.Close('}');
  return Finish(std::move(json), std::move(body), binary);
}

}  // namespace weir::oip
