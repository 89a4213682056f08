#include "oip/http/json_value.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "base/text.h"
#include "oip/infer_rules.h"

namespace weir::oip {
namespace {

std::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace

std::unexpected<Error> MalformedJson(simdjson::error_code code) {
  std::string_view why = simdjson::error_message(code);
  if (why.ends_with('.')) why.remove_suffix(1);
  return Bad(fmt::format("malformed JSON: {}", why));
}

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

std::string_view Token(json::value& value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && std::strchr(" \t\r\n", token.back()) != nullptr) token.remove_suffix(1);
  return token;
}

std::optional<double> NotFinite(std::string_view token) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (token == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (token == "Infinity" || token == "Inf") return kInfinity;
  if (token == "-Infinity" || token == "-Inf") return -kInfinity;
  return std::nullopt;
}

Status Validate(json::value value, int depth) {
  if (depth > kMaxJsonDepth) return Bad(fmt::format("JSON is nested deeper than {}", kMaxJsonDepth));
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
      for (auto item : array) TRY_STATUS(Validate(TRY_JSON(item), depth + 1));
      return {};
    }
    case Kind::kObject: {
      json::object object = TRY_JSON(value.get_object());
      for (auto member : object) {
        json::field field = TRY_JSON(member);
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

}  // namespace weir::oip
