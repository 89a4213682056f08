// Reading of http_codec.h: JSON in one pass, binary tensors as slices of the body.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/text.h"
#include "oip/http/codec.h"
#include "oip/http/json_data.h"
#include "oip/http/json_value.h"
#include "oip/infer_rules.h"
#include "oip/status.h"

namespace weir::oip {
namespace {

std::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// The keys of the protocol that an object has had: none may come twice.
class SeenKeys {
 public:
  Status Once(std::string_view key) {
    for (const std::string_view before : std::span(keys_).first(count_)) {
      if (before == key) return Bad(fmt::format("key '{}' is there twice", key));
    }
    keys_[count_++] = key;
    return {};
  }

 private:
  std::array<std::string_view, 8> keys_;  // no object of the protocol has more
  size_t count_ = 0;
};

Status ReadTensorParameters(json::value value, TensorParameters& parameters) {
  return ForEachMember(TRY(AsObject(value, "'parameters'")),
                       [&](std::string_view name, json::value parameter) -> Status {
                         const Kind kind = KindOf(parameter);
                         if (kind == Kind::kArray || kind == Kind::kObject) {
                           if (IsTensorParameter(name))
                             return Bad(fmt::format("parameter {} is not a single value", Quoted(name)));
                           return Validate(parameter);
                         }
                         return SetTensorParameter(name, TRY(ReadParameter(name, parameter)), parameters);
                       });
}

// An input of a request or an output of a response.
struct TensorRead {
  infer::Tensor tensor;
  std::optional<RegionPart> region;
};

// The elements of a "data" array, nested in any way, whatever each of them is.
Result<int64_t> CountItems(json::value value, int depth = 1) {
  if (depth > kMaxJsonDepth) return Bad(fmt::format("JSON is nested deeper than {}", kMaxJsonDepth));
  if (KindOf(value) != Kind::kArray) return Bad("'data' is not an array");
  int64_t count = 0;
  json::array array = TRY_JSON(value.get_array());
  for (auto item : array) {
    json::value element = TRY_JSON(item);
    if (KindOf(element) == Kind::kArray) {
      count += TRY(CountItems(element, depth + 1));
    } else {
      TRY_STATUS(Validate(element));
      ++count;
    }
  }
  return count;
}

// A body: JSON, and the binary tensors after it.
class BodyReader {
 public:
  BodyReader(const Bytes& body, std::string_view text) : body_(body), text_(text), offset_(text.size()) {}

  Result<InferRequest> ReadRequest(json::object root);
  Result<infer::Response> ReadResponse(json::object root, infer::RequestForm::Outputs wanted);

 private:
  Result<TensorRead> ReadTensor(json::value value, std::string_view kind, size_t index);
  Result<TensorRead> ReadMembers(json::object object, std::string& name);
  // The data that lies after the JSON, or the region, of a tensor without data in the JSON.
  Status ReadElsewhere(const TensorParameters& parameters, TensorRead& read);
  Status TakeBinary(uint64_t size, infer::Tensor& tensor);
  Result<RequestedOutput> ReadRequestedOutput(json::value value, size_t index, std::vector<bool>& said);
  Status CheckEnd() const {
    if (offset_ == body_.size()) return {};
    return Bad(fmt::format("{} bytes are left over after the last binary tensor", body_.size() - offset_));
  }

  const Bytes& body_;
  const std::string_view text_;  // the JSON, in its padded copy
  size_t offset_;                // where the next binary tensor begins
  // The values of outputs are checked against their JSON description, and not kept.
  bool passes_over_ = false;
};

Status BodyReader::TakeBinary(uint64_t size, infer::Tensor& tensor) {
  TRY_STATUS(CheckSize(tensor.dtype, TRY(CountElements(tensor)), size));
  if (size > body_.size() - offset_) {
    return Bad(fmt::format("binary_data_size is {}, but {} bytes of the body are left", size,
                           body_.size() - offset_));
  }
  tensor.data = body_.Slice(offset_, size);
  offset_ += size;
  const size_t alignment = infer::ByteSize(tensor.dtype);
  if (!passes_over_ && alignment > 1 && reinterpret_cast<uintptr_t>(tensor.data.data()) % alignment != 0) {
    tensor.data = Bytes::Copy(tensor.data.span());
  }
  return tensor.dtype == infer::DType::kBytes ? CheckData(tensor) : Status();
}

Status BodyReader::ReadElsewhere(const TensorParameters& parameters, TensorRead& read) {
  read.region = TRY(RegionOf(parameters));
  if (read.region) {
    if (parameters.binary_data_size) return Bad("both binary_data_size and shared_memory_region are given");
    return {};
  }
  if (parameters.binary_data_size) return TakeBinary(*parameters.binary_data_size, read.tensor);
  // An output in a region may say nothing of where it lies, as those of our own server do not.
  if (passes_over_) return {};
  return Bad("has no data: give 'data', or binary_data_size or shared_memory_region in its parameters");
}

Result<TensorRead> BodyReader::ReadMembers(json::object object, std::string& name) {
  TensorRead read;
  infer::Tensor& tensor = read.tensor;
  TensorParameters parameters;
  SeenKeys seen;
  bool has_shape = false, has_datatype = false, has_data = false;
  const char* late_data = nullptr;  // met before the shape and the type: it is read in a second pass
  std::optional<int64_t> items;     // of data that is counted alone
  TRY_STATUS(ForEachMember(object, [&](std::string_view key, json::value value) -> Status {
    if (key == "name") {
      TRY_STATUS(seen.Once(key));
      name = TRY(ReadString(value, key));
    } else if (key == "shape") {
      TRY_STATUS(seen.Once(key));
      tensor.shape = TRY(ReadShape(value));
      has_shape = true;
    } else if (key == "datatype") {
      TRY_STATUS(seen.Once(key));
      tensor.dtype = TRY(ReadDType(TRY(ReadString(value, key))));
      has_datatype = true;
    } else if (key == "parameters") {
      TRY_STATUS(seen.Once(key));
      TRY_STATUS(ReadTensorParameters(value, parameters));
    } else if (key == "data") {
      TRY_STATUS(seen.Once(key));
      has_data = true;
      if (passes_over_) {
        items = TRY(CountItems(value));
        return {};
      }
      if (has_shape && has_datatype) return ReadJsonData(value, tensor, text_);
      late_data = value.raw_json_token().data();
    } else {
      return Validate(value);
    }
    return {};
  }));
  if (!has_shape) return Bad("'shape' is missing");
  if (!has_datatype) return Bad("'datatype' is missing");
  if (items && *items != TRY(CountElements(tensor)))
    return Bad(fmt::format("data has {} elements, its shape is {}", *items, infer::ToString(tensor.shape)));
  if (late_data != nullptr) {
    TRY_JSON(object.reset());
    for (auto item : object) {
      json::field field = TRY_JSON(item);
      if (field.value().raw_json_token().data() != late_data) continue;
      TRY_STATUS(ReadJsonData(field.value(), tensor, text_));
    }
  }
  if (!has_data) {
    TRY_STATUS(ReadElsewhere(parameters, read));
  } else if (parameters.binary_data_size || parameters.region) {
    return Bad("'data' is given, and binary_data_size or shared_memory_region as well");
  }
  return read;
}

Result<TensorRead> BodyReader::ReadTensor(json::value value, std::string_view kind, size_t index) {
  std::string name;
  auto read = [&]() -> Result<TensorRead> { return ReadMembers(TRY(AsObject(value, "it")), name); }();
  if (name.empty()) {
    const Error nameless{ErrorCode::kInvalidArgument, "'name' is missing or empty"};
    return Context(fmt::format("{}s[{}]", kind, index), read ? nameless : read.error());
  }
  if (!read) return Context(fmt::format("{} {}", kind, Quoted(name)), read.error());
  read->tensor.name = std::move(name);
  return read;
}

Result<RequestedOutput> BodyReader::ReadRequestedOutput(json::value value, size_t index,
                                                        std::vector<bool>& said) {
  std::string name;
  TensorParameters parameters;
  SeenKeys seen;
  const Status read = [&]() -> Status {
    return ForEachMember(TRY(AsObject(value, "it")), [&](std::string_view key, json::value member) -> Status {
      if (key == "name") {
        TRY_STATUS(seen.Once(key));
        name = TRY(ReadString(member, key));
        return {};
      }
      if (key == "parameters") {
        TRY_STATUS(seen.Once(key));
        return ReadTensorParameters(member, parameters);
      }
      return Validate(member);
    });
  }();
  if (name.empty()) {
    const Error nameless{ErrorCode::kInvalidArgument, "'name' is missing or empty"};
    return Context(fmt::format("outputs[{}]", index), read ? nameless : read.error());
  }
  if (!read) return Context("output " + Quoted(name), read.error());
  said.push_back(parameters.binary_data.has_value());
  auto wish = WishOf(name, parameters, false);
  if (!wish) return Context("output " + Quoted(name), wish.error());
  return wish;
}

Result<InferRequest> BodyReader::ReadRequest(json::object root) {
  InferRequest result;
  infer::Request& request = result.request;
  std::vector<bool> said;  // of each output: whether it says itself if it is to be binary
  SeenKeys seen;
  bool has_inputs = false;
  TRY_STATUS(ForEachMember(root, [&](std::string_view key, json::value value) -> Status {
    if (key == "id") {
      TRY_STATUS(seen.Once(key));
      request.id = TRY(ReadString(value, key));
    } else if (key == "parameters") {
      TRY_STATUS(seen.Once(key));
      return ForEachMember(TRY(AsObject(value, "'parameters'")),
                           [&](std::string_view name, json::value v) -> Status {
                             infer::Parameter parameter = TRY(ReadParameter(name, v));
                             return SetRequestParameter(std::string(name), std::move(parameter), result);
                           });
    } else if (key == "inputs") {
      TRY_STATUS(seen.Once(key));
      has_inputs = true;
      return ForEachItem(value, key, [&](json::value item) -> Status {
        if (request.inputs.size() == kMaxTensors) return Bad(fmt::format("more than {} inputs", kMaxTensors));
        TensorRead input = TRY(ReadTensor(item, "input", request.inputs.size()));
        if (input.region) TRY_STATUS(CheckRegion(input.tensor, *input.region));
        request.inputs.push_back(std::move(input.tensor));
        result.input_regions.push_back(std::move(input.region));
        return {};
      });
    } else if (key == "outputs") {
      TRY_STATUS(seen.Once(key));
      return ForEachItem(value, key, [&](json::value item) -> Status {
        if (result.outputs.size() == kMaxTensors)
          return Bad(fmt::format("more than {} outputs", kMaxTensors));
        result.outputs.push_back(TRY(ReadRequestedOutput(item, result.outputs.size(), said)));
        return {};
      });
    } else {
      return Validate(value);
    }
    return {};
  }));
  if (!has_inputs) return Bad("'inputs' is missing");
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    if (!said[i]) result.outputs[i].binary = result.binary_by_default;
    request.outputs.push_back(result.outputs[i].name);
  }
  TRY_STATUS(CheckNames(result));
  TRY_STATUS(CheckEnd());
  return result;
}

// Passes over parameters of other servers' responses that are unknown here.
Status ReadResponseParameters(json::value value, ResponseParameters& parameters) {
  if (KindOf(value) != Kind::kObject) return Validate(value);
  return ForEachMember(TRY(AsObject(value, "'parameters'")),
                       [&](std::string_view name, json::value parameter) -> Status {
                         if (!ResponseParameters::Knows(name)) return Validate(parameter);
                         return parameters.Set(name, TRY(ReadParameter(name, parameter)));
                       });
}

Result<infer::Response> BodyReader::ReadResponse(json::object root, infer::RequestForm::Outputs wanted) {
  passes_over_ = wanted == infer::RequestForm::Outputs::kPassOver;
  infer::Response response;
  ResponseParameters parameters;
  SeenKeys seen;
  bool has_outputs = false;
  TRY_STATUS(ForEachMember(root, [&](std::string_view key, json::value value) -> Status {
    if (key == "model_name") {
      TRY_STATUS(seen.Once(key));
      response.model = TRY(ReadString(value, key));
    } else if (key == "model_version") {
      TRY_STATUS(seen.Once(key));
      response.version = TRY(ReadString(value, key));
    } else if (key == "id") {
      TRY_STATUS(seen.Once(key));
      response.id = TRY(ReadString(value, key));
    } else if (key == "parameters") {
      TRY_STATUS(seen.Once(key));
      return ReadResponseParameters(value, parameters);
    } else if (key == "outputs") {
      TRY_STATUS(seen.Once(key));
      has_outputs = true;
      return ForEachItem(value, key, [&, index = size_t{0}](json::value item) mutable -> Status {
        if (index == kMaxTensors) return Bad(fmt::format("more than {} outputs", kMaxTensors));
        TensorRead output = TRY(ReadTensor(item, "output", index++));
        if (!passes_over_) response.outputs.push_back(std::move(output.tensor));
        return {};
      });
    } else if (key == "error") {
      return Bad("an error with status 200: " +
                 CutToOneLine(TRY(ReadString(value, key)), kMaxServerErrorText));
    } else {
      return Validate(value);
    }
    return {};
  }));
  if (!has_outputs) return Bad("'outputs' is missing");
  TRY_STATUS(CheckEnd());
  response.durations = TRY(parameters.Durations());
  return response;
}

// Memory that parsing needs beside the body, kept for the next one of its thread: a padded copy of the JSON
// (what simdjson reads beyond the end must not be the client's) and simdjson's index of it.
struct Scratch {
  static constexpr size_t kKept = size_t{4} << 20;  // longer JSON has one of its own, and gives it back

  json::parser parser;
  std::unique_ptr<char[]> text;
  size_t capacity = 0;

  Result<json::document> Open(std::string_view text_in) {
    if (capacity < text_in.size()) {
      const size_t wanted = std::max(std::min(std::bit_ceil(text_in.size()), kKept), text_in.size());
      text = std::make_unique_for_overwrite<char[]>(wanted + simdjson::SIMDJSON_PADDING);
      capacity = wanted;
      if (const simdjson::error_code error = parser.allocate(wanted)) return MalformedJson(error);
    }
    std::memcpy(text.get(), text_in.data(), text_in.size());
    std::memset(text.get() + text_in.size(), ' ', simdjson::SIMDJSON_PADDING);
    return TRY_JSON(parser.iterate(text.get(), text_in.size(), capacity + simdjson::SIMDJSON_PADDING));
  }
};

// Reads `body` with `read`, which is given a reader of it and its JSON.
template <typename T, typename Read>
Result<T> ReadBody(const Bytes& body, std::optional<uint64_t> header_length, Read&& read) {
  if (header_length && *header_length > body.size()) {
    return Bad(fmt::format("Inference-Header-Content-Length is {}, but the body has {} bytes", *header_length,
                           body.size()));
  }
  const std::string_view text = body.text().substr(0, header_length.value_or(body.size()));
  if (text.empty()) return Bad("malformed JSON: it is empty");
  if (!header_length && static_cast<unsigned char>(text.front()) >= 0x7f) {
    return Bad(
        "malformed JSON: these are bytes; whoever sends those says how much JSON is before them in the "
        "header Inference-Header-Content-Length, 0 where there is none");
  }
  thread_local Scratch kept;
  std::optional<Scratch> own;
  Scratch& scratch = text.size() <= Scratch::kKept ? kept : own.emplace();

  json::document document = TRY(scratch.Open(text));
  json::object root;
  if (const simdjson::error_code error = document.get_object().get(root)) {
    return error == simdjson::INCORRECT_TYPE ? Bad("the JSON is not an object") : MalformedJson(error);
  }
  T result = TRY(read(BodyReader(body, {scratch.text.get(), text.size()}), root));
  if (document.current_location().error() == simdjson::SUCCESS) {
    return Bad("malformed JSON: something follows the object");
  }
  return result;
}

}  // namespace

Result<InferRequest> ParseHttpRequest(const Bytes& body, std::optional<uint64_t> header_length) {
  return ReadBody<InferRequest>(
      body, header_length, [](BodyReader reader, json::object root) { return reader.ReadRequest(root); });
}

Result<infer::Response> ParseHttpResponse(const Bytes& body, std::optional<uint64_t> header_length,
                                          infer::RequestForm::Outputs outputs) {
  return ReadBody<infer::Response>(body, header_length, [outputs](BodyReader reader, json::object root) {
    return reader.ReadResponse(root, outputs);
  });
}

}  // namespace weir::oip
