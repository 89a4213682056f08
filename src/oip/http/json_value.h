// JSON values as simdjson gives them: each is read where it stands, once. For the few files that read JSON;
// simdjson is heavy. Errors are of the client, kInvalidArgument.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "infer/call.h"
#include "infer/tensor.h"

namespace weir::oip {

namespace json = simdjson::ondemand;

// The deepest nesting of arrays and objects, counted from the value at hand.
inline constexpr int kMaxJsonDepth = 100;

std::unexpected<Error> MalformedJson(simdjson::error_code code);

// The value of a simdjson result, or its error from the enclosing function.
#define TRY_JSON(expression)                                  \
  ({                                                          \
    auto try_json = (expression);                             \
    if (try_json.error() != simdjson::SUCCESS) [[unlikely]] { \
      return MalformedJson(try_json.error());                 \
    }                                                         \
    std::move(try_json).value_unsafe();                       \
  })

// The kind of a value, judged by its first character. kOther is NaN or Infinity, or not JSON.
enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject, kOther };
Kind KindOf(json::value& value);

// The text of a scalar as it stands, for messages and for the tokens that JSON does not have.
std::string_view Token(json::value& value);

// NaN, Infinity, Inf and the negative ones: Python's json and Triton write them for numbers that are not
// finite, and read them, so we do.
std::optional<double> NotFinite(std::string_view token);

// Reads a value to its end and finds every fault in it, where simdjson by itself only skips.
Status Validate(json::value value, int depth = 1);

// "WHAT is not an object" where it is none; and so on.
Result<json::object> AsObject(json::value value, std::string_view what);
Result<std::string> ReadString(json::value value, std::string_view what);
Result<infer::Shape> ReadShape(json::value value);
Result<infer::Parameter> ReadParameter(std::string_view name, json::value value);

// The members of an object, each given to `member(key, value)`, which reads the value whole or leaves it.
// null is the same as absent.
template <typename Member>
Status ForEachMember(json::object object, Member&& member) {
  for (auto item : object) {
    json::field field = TRY_JSON(item);
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
  if (KindOf(value) != Kind::kArray)
    return Fail(ErrorCode::kInvalidArgument, "'" + std::string(what) + "' is not an array");
  json::array array = TRY_JSON(value.get_array());
  for (auto element : array) TRY_STATUS(item(TRY_JSON(element)));
  return {};
}

}  // namespace weir::oip
