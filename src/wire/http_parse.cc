// Reading of http_codec.h: JSON in one pass, numbers straight into the tensors' memory.
#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "wire/buffer.h"
#include "wire/http_codec.h"
#include "wire/infer_rules.h"
#include "wire/text.h"

namespace weir::wire {
namespace {

namespace json = simdjson::ondemand;
using simdjson::error_code;

// Of arrays and objects in one another, from the tensor or parameter at hand on.
constexpr int kMaxDepth = 100;

std::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::unexpected<Error> Malformed(error_code code) {
  return Bad(fmt::format("malformed JSON: {}", simdjson::error_message(code)));
}

// The value of a simdjson result, or its error from the enclosing function.
#define TRY_JSON(expression)                                  \
  ({                                                          \
    auto try_json = (expression);                             \
    if (try_json.error() != simdjson::SUCCESS) [[unlikely]] { \
      return Malformed(try_json.error());                     \
    }                                                         \
    std::move(try_json).value_unsafe();                       \
  })

// The text of a scalar as it stands, for messages and for the tokens that JSON does not have.
std::string_view Token(json::value& value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && std::strchr(" \t\r\n", token.back()) != nullptr) token.remove_suffix(1);
  return token;
}

// What kind of value begins here. `kOther` is one of the tokens below, or not JSON.
enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject, kOther };
Kind KindOf(json::value& value) {
  json::json_type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return Kind::kOther;
  switch (type) {
    case json::json_type::null:
      return Kind::kNull;
    case json::json_type::boolean:
      return Kind::kBool;
    case json::json_type::number:
      return Kind::kNumber;
    case json::json_type::string:
      return Kind::kString;
    case json::json_type::array:
      return Kind::kArray;
    case json::json_type::object:
      return Kind::kObject;
  }
  return Kind::kOther;
}

// Python's json and Triton write these for numbers that are not finite, and read them.
std::optional<double> NotFinite(std::string_view token) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (token == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (token == "Infinity" || token == "Inf") return kInfinity;
  if (token == "-Infinity" || token == "-Inf") return -kInfinity;
  return std::nullopt;
}

// Reads a value to its end and finds every fault in it: simdjson by itself only skips.
Status Validate(json::value value, int depth) {
  if (depth > kMaxDepth) return Bad(fmt::format("JSON is nested deeper than {}", kMaxDepth));
  switch (KindOf(value)) {
    case Kind::kNull:
      TRY_JSON(value.is_null());
      return {};
    case Kind::kBool:
      TRY_JSON(value.get_bool());
      return {};
    case Kind::kString:
      TRY_JSON(value.get_string());
      return {};
    case Kind::kArray: {
      json::array array = TRY_JSON(value.get_array());
      for (auto item : array) TRY_STATUS(Validate(TRY_JSON(std::move(item)), depth + 1));
      return {};
    }
    case Kind::kObject: {
      json::object object = TRY_JSON(value.get_object());
      for (auto member : object) {
        json::field field = TRY_JSON(std::move(member));
        TRY_JSON(field.unescaped_key());
        TRY_STATUS(Validate(field.value(), depth + 1));
      }
      return {};
    }
    case Kind::kNumber:
    case Kind::kOther:
      if (NotFinite(Token(value))) return {};
      TRY_JSON(value.get_double());
      return {};
  }
  return {};
}

Result<json::object> AsObject(json::value value, std::string_view what) {
  if (KindOf(value) != Kind::kObject) return Bad(fmt::format("{} is not an object", what));
  return TRY_JSON(value.get_object());
}

// The members of an object, each given to `member(key, value)`, which reads the value whole or leaves it.
// null is the same as absent.
template <typename Member>
Status ForEachMember(json::object object, Member&& member) {
  for (auto item : object) {
    json::field field = TRY_JSON(std::move(item));
    const std::string_view key = TRY_JSON(field.unescaped_key());
    if (KindOf(field.value()) == Kind::kNull) {
      TRY_JSON(field.value().is_null());
    } else {
      TRY_STATUS(member(key, field.value()));
    }
  }
  return {};
}

template <typename Item>
Status ForEachItem(json::value value, std::string_view what, Item&& item) {
  if (KindOf(value) != Kind::kArray) return Bad(fmt::format("'{}' is not an array", what));
  json::array array = TRY_JSON(value.get_array());
  for (auto element : array) TRY_STATUS(item(TRY_JSON(std::move(element))));
  return {};
}

Result<std::string> ReadString(json::value value, std::string_view what) {
  if (KindOf(value) != Kind::kString) return Bad(fmt::format("'{}' is not a string", what));
  return std::string(TRY_JSON(value.get_string()));
}

Result<infer::Shape> ReadShape(json::value value) {
  infer::Shape shape;
  shape.reserve(4);
  TRY_STATUS(ForEachItem(value, "shape", [&](json::value dimension) -> Status {
    int64_t size = 0;
    if (dimension.get_int64().get(size) != simdjson::SUCCESS) {
      return Bad(fmt::format("'shape' holds {}, which is no 64-bit integer", Quoted(Token(dimension))));
    }
    if (shape.size() == kMaxRank) return Bad(fmt::format("'shape' has more than {} dimensions", kMaxRank));
    shape.push_back(size);
    return {};
  }));
  return shape;
}

Result<infer::Parameter> ReadParameter(std::string_view name, json::value value) {
  switch (KindOf(value)) {
    case Kind::kBool:
      return infer::Parameter(TRY_JSON(value.get_bool()));
    case Kind::kString:
      return infer::Parameter(std::string(TRY_JSON(value.get_string())));
    case Kind::kNumber:
    case Kind::kOther: {
      if (const auto token = NotFinite(Token(value))) return infer::Parameter(*token);
      int64_t integer = 0;
      if (value.get_int64().get(integer) == simdjson::SUCCESS) return infer::Parameter(integer);
      uint64_t large = 0;
      if (value.get_uint64().get(large) == simdjson::SUCCESS) return infer::Parameter(large);
      return infer::Parameter(TRY_JSON(value.get_double()));
    }
    case Kind::kNull:
    case Kind::kArray:
    case Kind::kObject:
      break;
  }
  return Bad(fmt::format("parameter {} is not a string, number or boolean", Quoted(name)));
}

// Why an element cannot be one of its tensor's.
enum class Flaw { kNone, kMalformed, kType, kRange };

Flaw ReadElement(json::value& value, bool& element) {
  return value.get_bool().get(element) == simdjson::SUCCESS ? Flaw::kNone : Flaw::kType;
}

// What is wrong with a number that was to be an integer.
Flaw WhyNoInteger(json::value& value) {
  const std::string_view token = Token(value);
  double number = 0;
  if (value.get_double().get(number) != simdjson::SUCCESS) {
    return NotFinite(token) ? Flaw::kType : Flaw::kMalformed;
  }
  return token.find_first_of(".eE") == std::string_view::npos ? Flaw::kRange : Flaw::kType;
}

template <typename T>
  requires std::is_integral_v<T>
Flaw ReadElement(json::value& value, T& element) {
  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t> wide{};
  error_code error{};
  if constexpr (std::is_signed_v<T>) {
    error = value.get_int64().get(wide);
  } else {
    error = value.get_uint64().get(wide);
  }
  if (error != simdjson::SUCCESS) [[unlikely]] {
    return WhyNoInteger(value);
  }
  element = static_cast<T>(wide);
  return std::in_range<T>(wide) ? Flaw::kNone : Flaw::kRange;
}

Flaw ReadElement(json::value& value, double& element) {
  if (value.get_double().get(element) == simdjson::SUCCESS) [[likely]] {
    return Flaw::kNone;
  }
  const auto token = NotFinite(Token(value));
  element = token.value_or(0);
  return token ? Flaw::kNone : Flaw::kMalformed;
}

// The nearest float to the decimal. Rounding it to a double first gives the same, but where that double lies
// just between two floats or is too small for a normal float: there the decimal is read again.
Flaw ReadElement(json::value& value, float& element) {
  double wide = 0;
  const Flaw flaw = ReadElement(value, wide);
  element = static_cast<float>(wide);
  const uint64_t bits = std::bit_cast<uint64_t>(wide);
  const bool between = (bits & 0x1fff'ffff) == 0x1000'0000;
  const bool tiny = std::fabs(wide) < std::numeric_limits<float>::min() && wide != 0;
  if ((between || tiny) && flaw == Flaw::kNone) [[unlikely]] {
    const std::string_view token = Token(value);
    float exact = 0;
    const auto read = std::from_chars(token.data(), token.data() + token.size(), exact);
    if (read.ec == std::errc()) element = exact;
  }
  return std::isinf(element) && !std::isinf(wide) ? Flaw::kRange : flaw;
}

// Takes the elements of one tensor, in their order.
template <typename T>
class Elements {
 public:
  Elements(Bytes& data, size_t count) : next_(reinterpret_cast<T*>(data.mutable_data())), left_(count) {}
  size_t left() const { return left_; }
  Flaw Take(json::value& value) {
    T element{};
    const Flaw flaw = ReadElement(value, element);
    *next_++ = element;
    --left_;
    return flaw;
  }

 private:
  T* next_;
  size_t left_;
};

// BYTES: each with its length before it.
class Strings {
 public:
  Strings(Buffer& data, size_t count) : data_(data), left_(count) {}
  size_t left() const { return left_; }
  Flaw Take(json::value& value) {
    if (KindOf(value) != Kind::kString) return Flaw::kType;
    std::string_view text;
    if (value.get_string().get(text) != simdjson::SUCCESS) return Flaw::kMalformed;
    const auto length = static_cast<uint32_t>(text.size());
    char* const to = data_.Room(sizeof length + text.size());
    std::memcpy(to, &length, sizeof length);
    if (!text.empty()) std::memcpy(to + sizeof length, text.data(), text.size());
    data_.Advance(sizeof length + text.size());
    --left_;
    return Flaw::kNone;
  }

 private:
  Buffer& data_;
  size_t left_;
};

Status FlawOf(const infer::Tensor& tensor, json::value& value, Flaw flaw) {
  const auto said = [&](std::string_view what) {
    return Bad(
        fmt::format("data holds {}, which {} {}", Quoted(Token(value)), what, infer::ToString(tensor.dtype)));
  };
  return flaw == Flaw::kRange ? said("does not fit") : said("is no value of");
}

// Nested or flat, the elements lie in row-major order; how they are nested is not held against the shape.
template <typename Sink>
Status Flatten(json::value value, const infer::Tensor& tensor, int depth, Sink& sink) {
  if (depth > kMaxDepth) return Bad(fmt::format("data is nested deeper than {}", kMaxDepth));
  json::array array = TRY_JSON(value.get_array());
  for (auto item : array) {
    json::value element = TRY_JSON(std::move(item));
    if (KindOf(element) == Kind::kArray) {
      TRY_STATUS(Flatten(element, tensor, depth + 1, sink));
      continue;
    }
    if (sink.left() == 0) {
      return Bad(fmt::format("data has more elements than shape {}", infer::ToString(tensor.shape)));
    }
    const Flaw flaw = sink.Take(element);
    if (flaw != Flaw::kNone) [[unlikely]] {
      return FlawOf(tensor, element, flaw);
    }
  }
  return {};
}

template <typename Sink>
Status Fill(json::value value, const infer::Tensor& tensor, Sink sink) {
  if (KindOf(value) != Kind::kArray) return Bad("'data' is not an array");
  const size_t wanted = sink.left();
  TRY_STATUS(Flatten(value, tensor, 1, sink));
  if (sink.left() == 0) return {};
  return Bad(fmt::format("data has {} elements, shape {} wants {}", wanted - sink.left(),
                         infer::ToString(tensor.shape), wanted));
}

template <typename T>
Status FillNumbers(json::value value, infer::Tensor& tensor, size_t count) {
  tensor.data = Bytes::AllocateUninitialized(count * sizeof(T));
  return Fill(value, tensor, Elements<T>(tensor.data, count));
}

Status FillStrings(json::value value, infer::Tensor& tensor, size_t count) {
  Buffer data(8 * count);
  TRY_STATUS(Fill(value, tensor, Strings(data, count)));
  tensor.data = std::move(data).Take();
  return {};
}

// `json_size`: of the text that `value` is a part of.
Status ReadData(json::value value, infer::Tensor& tensor, size_t json_size) {
  const int64_t elements = TRY(CountElements(tensor));
  // An element is a character and a comma or bracket at least: no memory for what cannot be there.
  if (static_cast<uint64_t>(elements) > json_size / 2) {
    return Bad(fmt::format("data has fewer elements than shape {}", infer::ToString(tensor.shape)));
  }
  const auto count = static_cast<size_t>(elements);
  switch (tensor.dtype) {
    case infer::DType::kBool:
      return FillNumbers<bool>(value, tensor, count);
    case infer::DType::kUint8:
      return FillNumbers<uint8_t>(value, tensor, count);
    case infer::DType::kUint16:
      return FillNumbers<uint16_t>(value, tensor, count);
    case infer::DType::kUint32:
      return FillNumbers<uint32_t>(value, tensor, count);
    case infer::DType::kUint64:
      return FillNumbers<uint64_t>(value, tensor, count);
    case infer::DType::kInt8:
      return FillNumbers<int8_t>(value, tensor, count);
    case infer::DType::kInt16:
      return FillNumbers<int16_t>(value, tensor, count);
    case infer::DType::kInt32:
      return FillNumbers<int32_t>(value, tensor, count);
    case infer::DType::kInt64:
      return FillNumbers<int64_t>(value, tensor, count);
    case infer::DType::kFp32:
      return FillNumbers<float>(value, tensor, count);
    case infer::DType::kFp64:
      return FillNumbers<double>(value, tensor, count);
    case infer::DType::kBytes:
      return FillStrings(value, tensor, count);
    case infer::DType::kFp16:
    case infer::DType::kBf16:
      break;
  }
  return Bad(
      fmt::format("{} has no JSON form: send it binary (binary_data_size)", infer::ToString(tensor.dtype)));
}

// The keys of the protocol that an object has had: none may come twice.
class Seen {
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
                         if (kind == Kind::kArray || kind == Kind::kObject) return Validate(parameter, 1);
                         return SetTensorParameter(name, TRY(ReadParameter(name, parameter)), parameters);
                       });
}

// An input of a request or an output of a response.
struct TensorRead {
  infer::Tensor tensor;
  std::optional<RegionPart> region;
};

// A body: JSON, and the binary tensors after it.
class BodyReader {
 public:
  BodyReader(const Bytes& body, size_t json_size) : body_(body), json_size_(json_size), offset_(json_size) {}

  Result<InferRequest> ReadRequest(json::object root);
  Result<infer::Response> ReadResponse(json::object root);

 private:
  Result<TensorRead> ReadTensor(json::value value, std::string_view kind, size_t index);
  Result<TensorRead> ReadMembers(json::object object, std::string& name);
  // The data that lies after the JSON, or the region, of a tensor without data in the JSON.
  Status ReadElsewhere(const TensorParameters& parameters, TensorRead& read);
  Status TakeBinary(uint64_t size, infer::Tensor& tensor);
  Result<OutputWish> ReadWish(json::value value, size_t index, std::vector<bool>& said);
  Status CheckEnd() const {
    if (offset_ == body_.size()) return {};
    return Bad(fmt::format("{} bytes are left over after the last binary tensor", body_.size() - offset_));
  }

  const Bytes& body_;
  const size_t json_size_;
  size_t offset_;  // where the next binary tensor begins
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
  if (alignment > 1 && reinterpret_cast<uintptr_t>(tensor.data.data()) % alignment != 0) {
    tensor.data = Bytes::Copy(tensor.data.span());
  }
  return tensor.dtype == infer::DType::kBytes ? CheckData(tensor) : Status();
}

Status BodyReader::ReadElsewhere(const TensorParameters& parameters, TensorRead& read) {
  read.region = TRY(RegionOf(parameters));
  if (read.region) {
    if (parameters.binary_data_size) return Bad("both binary_data_size and shared_memory_region are given");
    return CheckSize(read.tensor.dtype, TRY(CountElements(read.tensor)), read.region->byte_size);
  }
  if (parameters.binary_data_size) return TakeBinary(*parameters.binary_data_size, read.tensor);
  return Bad("has no data: give 'data', or binary_data_size or shared_memory_region in its parameters");
}

Result<TensorRead> BodyReader::ReadMembers(json::object object, std::string& name) {
  TensorRead read;
  infer::Tensor& tensor = read.tensor;
  TensorParameters parameters;
  Seen seen;
  bool has_shape = false, has_datatype = false, has_data = false;
  const char* late_data = nullptr;  // met before the shape and the type: it is read in a second pass
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
      if (has_shape && has_datatype) return ReadData(value, tensor, json_size_);
      late_data = value.raw_json_token().data();
    } else {
      return Validate(value, 1);
    }
    return {};
  }));
  if (!has_shape) return Bad("'shape' is missing");
  if (!has_datatype) return Bad("'datatype' is missing");
  if (late_data != nullptr) {
    TRY_JSON(object.reset());
    for (auto item : object) {
      json::field field = TRY_JSON(std::move(item));
      if (field.value().raw_json_token().data() != late_data) continue;
      TRY_STATUS(ReadData(field.value(), tensor, json_size_));
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

Result<OutputWish> BodyReader::ReadWish(json::value value, size_t index, std::vector<bool>& said) {
  std::string name;
  TensorParameters parameters;
  Seen seen;
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
      return Validate(member, 1);
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
  Seen seen;
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
        request.inputs.push_back(std::move(input.tensor));
        result.input_regions.push_back(std::move(input.region));
        return {};
      });
    } else if (key == "outputs") {
      TRY_STATUS(seen.Once(key));
      return ForEachItem(value, key, [&](json::value item) -> Status {
        if (result.outputs.size() == kMaxTensors)
          return Bad(fmt::format("more than {} outputs", kMaxTensors));
        result.outputs.push_back(TRY(ReadWish(item, result.outputs.size(), said)));
        return {};
      });
    } else {
      return Validate(value, 1);
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

Result<infer::Response> BodyReader::ReadResponse(json::object root) {
  infer::Response response;
  Seen seen;
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
    } else if (key == "outputs") {
      TRY_STATUS(seen.Once(key));
      return ForEachItem(value, key, [&](json::value item) -> Status {
        if (response.outputs.size() == kMaxTensors)
          return Bad(fmt::format("more than {} outputs", kMaxTensors));
        response.outputs.push_back(TRY(ReadTensor(item, "output", response.outputs.size())).tensor);
        return {};
      });
    } else {
      return Validate(value, 1);
    }
    return {};
  }));
  TRY_STATUS(CheckEnd());
  return response;
}

// What parsing needs beside the body, kept for the next one of its thread: a padded copy of the JSON (what
// simdjson reads beyond the end must not be the client's) and simdjson's index of it.
struct Scratch {
  json::parser parser;
  std::unique_ptr<char[]> text;
  size_t capacity = 0;

  Result<json::document> Open(std::string_view text_in) {
    if (capacity < text_in.size()) {
      const size_t wanted = std::bit_ceil(std::max<size_t>(text_in.size(), 4096));
      text = std::make_unique_for_overwrite<char[]>(wanted + simdjson::SIMDJSON_PADDING);
      capacity = wanted;
      if (const error_code error = parser.allocate(wanted)) return Malformed(error);
    }
    std::memcpy(text.get(), text_in.data(), text_in.size());
    std::memset(text.get() + text_in.size(), ' ', simdjson::SIMDJSON_PADDING);
    return TRY_JSON(parser.iterate(text.get(), text_in.size(), capacity + simdjson::SIMDJSON_PADDING));
  }
};

// Reads `body` with `read`, a member of BodyReader.
template <typename T>
Result<T> ReadBody(const Bytes& body, std::optional<uint64_t> header_length,
                   Result<T> (BodyReader::*read)(json::object)) {
  constexpr size_t kKept = size_t{4} << 20;  // longer JSON pays for its own memory
  if (header_length && *header_length > body.size()) {
    return Bad(fmt::format("Inference-Header-Content-Length is {}, but the body has {} bytes", *header_length,
                           body.size()));
  }
  const std::string_view text = body.text().substr(0, header_length.value_or(body.size()));
  if (text.empty()) return Bad("malformed JSON: it is empty");
  thread_local Scratch kept;
  std::optional<Scratch> own;
  Scratch& scratch = text.size() <= kKept ? kept : own.emplace();

  json::document document = TRY(scratch.Open(text));
  json::object root;
  if (const error_code error = document.get_object().get(root)) {
    return error == simdjson::INCORRECT_TYPE ? Bad("the JSON is not an object") : Malformed(error);
  }
  T result = TRY((BodyReader(body, text.size()).*read)(root));
  if (document.current_location().error() == simdjson::SUCCESS) {
    return Bad("malformed JSON: something follows the object");
  }
  return result;
}

}  // namespace

Result<InferRequest> ParseHttpRequest(const Bytes& body, std::optional<uint64_t> header_length) {
  return ReadBody(body, header_length, &BodyReader::ReadRequest);
}

Result<infer::Response> ParseHttpResponse(const Bytes& body, std::optional<uint64_t> header_length) {
  return ReadBody(body, header_length, &BodyReader::ReadResponse);
}

}  // namespace weir::wire
