// Structs to JSON and back from one description of their fields.
//
// A struct is described once, in the .cc file that wraps it:
//   template <typename F>
//   void Describe(F& fields, Described<F, Point>& point) {
//     fields("x", point.x);
//     fields("label", point.label);  // std::optional: absent where there is none
//   }
// FieldsToJson(point) and FieldsFromJson<Point>(json) follow from that. Keys keep the order of the
// description. Values may be numbers, truths, text, enums (as their number), Json, structs, and vectors,
// optionals, pairs (a list of two), maps by name of them. A struct with ToValue() and FromValue(json) has a
// form of its own, for example a list of two numbers.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/json_blocks.h"

namespace weir {

template <typename F, typename T>
using Described = std::conditional_t<F::kReads, T, const T>;

namespace internal {

template <typename T>
constexpr bool kIsOptional = false;
template <typename T>
constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
constexpr bool kIsVector = false;
template <typename T>
constexpr bool kIsVector<std::vector<T>> = true;
template <typename T>
constexpr bool kIsMap = false;
template <typename T>
constexpr bool kIsMap<std::map<std::string, T>> = true;
template <typename T>
constexpr bool kIsPair = false;
template <typename First, typename Second>
constexpr bool kIsPair<std::pair<First, Second>> = true;
template <typename T>
concept HasOwnForm = requires(const T& value, const Json& json) {
  { value.ToValue() } -> std::same_as<Json>;
  { T::FromValue(json) } -> std::same_as<Result<T>>;
};

// Puts the place of a fault before its message: "levels[0]: response_ms: key "n" is missing".
inline std::unexpected<Error> AtPlace(const std::string& place, Error error, bool is_key = true) {
  if (error.message.starts_with("["))
    error.message = place + error.message;
  else if (error.message.starts_with("is "))
    error.message = (is_key ? "key \"" + place + "\" " : place + " ") + error.message;
  else
    error.message = place + ": " + error.message;
  return std::unexpected(std::move(error));
}

}  // namespace internal

template <typename T>
Json FieldsToJson(const T& value);
template <typename T>
Status ReadFields(const Json& json, T& value);

// Puts fields into a JSON object.
class FieldWriter {
 public:
  static constexpr bool kReads = false;
  explicit FieldWriter(Json& json) : json_(json) {}

  template <typename T>
  void operator()(const char* key, const T& value) {
    if constexpr (internal::kIsOptional<T>) {
      if (value) json_[key] = FieldsToJson(*value);
    } else {
      json_[key] = FieldsToJson(value);
    }
  }
  // A field that is absent where it has the value of a new struct: empty, 0, false.
  template <typename T>
  void Unless(const char* key, const T& value) {
    if (value != T{}) (*this)(key, value);
  }
  // A field that older files may lack.
  template <typename T>
  void IfAny(const char* key, const T& value) {
    (*this)(key, value);
  }
  // A number that is finite and 0 or more.
  template <typename T>
  void FromZero(const char* key, const T& value) {
    (*this)(key, value);
  }
  // A finite number.
  template <typename T>
  void Finite(const char* key, const T& value) {
    (*this)(key, value);
  }
  // A struct whose keys stand beside the others; it is there if the key `marker` is.
  template <typename T>
  void Beside(const char*, const std::optional<T>& value) {
    if (value) Describe(*this, *value);
  }
  // A long list of numbers, as base64 of their bytes; they need not be finite.
  template <typename T>
  void Block(const char* key, const std::vector<T>& numbers) {
    json_[key] = EncodeBlock(numbers);
  }
  // A condition that a reader requires of the fields before it.
  void Require(bool, const char*) {}

 private:
  Json& json_;
};

// Takes fields from a JSON object. Keys that are not described are passed over. After the first error nothing
// more is read.
class FieldReader {
 public:
  static constexpr bool kReads = true;
  explicit FieldReader(const Json& json) : json_(json) {
    if (!json.is_object()) status_ = Fail(ErrorCode::kCorrupt, "not an object");
  }

  template <typename T>
  void operator()(const char* key, T& value) {
    if (!status_) return;
    const auto found = json_.find(key);
    if (found == json_.end()) {
      if constexpr (internal::kIsOptional<T>) {
        value.reset();
      } else {
        status_ = Fail(ErrorCode::kCorrupt, std::string("key \"") + key + "\" is missing");
      }
      return;
    }
    if (Status read = ReadFields(*found, value); !read)
      status_ = internal::AtPlace(key, std::move(read).error());
  }
  template <typename T>
  void Unless(const char* key, T& value) {
    IfAny(key, value);
  }
  template <typename T>
  void IfAny(const char* key, T& value) {
    if (status_ && json_.contains(key)) (*this)(key, value);
  }
  template <typename T>
  void FromZero(const char* key, T& value) {
    (*this)(key, value);
    if (status_ && !Holds(value, [](auto number) { return std::isfinite(number) && number >= 0; }))
      status_ = Fail(ErrorCode::kCorrupt, std::string("key \"") + key + "\" is not a number from 0");
  }
  template <typename T>
  void Finite(const char* key, T& value) {
    (*this)(key, value);
    if (status_ && !Holds(value, [](auto number) { return std::isfinite(number); }))
      status_ = Fail(ErrorCode::kCorrupt, std::string("key \"") + key + "\" is not a finite number");
  }
  template <typename T>
  void Beside(const char* marker, std::optional<T>& value) {
    value.reset();
    if (status_ && json_.contains(marker)) Describe(*this, value.emplace(T{}));
  }
  template <typename T>
  void Block(const char* key, std::vector<T>& numbers) {
    std::string text;
    (*this)(key, text);
    if (!status_) return;
    auto read = DecodeBlock<T>(text);
    if (!read)
      status_ = internal::AtPlace(key, std::move(read).error());
    else
      numbers = *std::move(read);
  }
  void Require(bool holds, const char* fault) {
    if (status_ && !holds) status_ = Fail(ErrorCode::kCorrupt, fault);
  }

  const Status& status() const { return status_; }

 private:
  template <typename T, typename Rule>
  static bool Holds(const T& value, Rule rule) {
    if constexpr (internal::kIsOptional<T>) {
      return !value || rule(static_cast<double>(*value));
    } else {
      return rule(static_cast<double>(value));
    }
  }

  const Json& json_;
  Status status_;
};

template <typename T>
Json FieldsToJson(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string> || std::same_as<T, Json>) {
    return Json(value);
  } else if constexpr (internal::HasOwnForm<T>) {
    return value.ToValue();
  } else if constexpr (std::is_enum_v<T>) {
    return Json(std::to_underlying(value));
  } else if constexpr (internal::kIsPair<T>) {
    return Json::array({FieldsToJson(value.first), FieldsToJson(value.second)});
  } else if constexpr (internal::kIsVector<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(FieldsToJson(item));
    return list;
  } else if constexpr (internal::kIsMap<T>) {
    Json map = Json::object();
    for (const auto& [name, item] : value) map[name] = FieldsToJson(item);
    return map;
  } else {
    Json json = Json::object();
    FieldWriter writer(json);
    Describe(writer, value);
    return json;
  }
}

// Reads `value` from `json`; kCorrupt names the first key that is missing or of another kind.
template <typename T>
Status ReadFields(const Json& json, T& value) {
  const auto wrong = [](const char* wanted) {
    return Fail(ErrorCode::kCorrupt, std::string("is not ") + wanted);
  };
  if constexpr (std::same_as<T, Json>) {
    value = json;
  } else if constexpr (internal::HasOwnForm<T>) {
    Result<T> read = T::FromValue(json);
    if (!read) return std::unexpected(std::move(read).error());
    value = *std::move(read);
  } else if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> number{};
    Status read = ReadFields(json, number);
    value = static_cast<T>(number);
    return read;
  } else if constexpr (internal::kIsPair<T>) {
    if (!json.is_array() || json.size() != 2) return wrong("a list of two");
    Status first = ReadFields(json[0], value.first);
    return first ? ReadFields(json[1], value.second) : first;
  } else if constexpr (std::same_as<T, bool>) {
    if (!json.is_boolean()) return wrong("true or false");
    value = json.get<bool>();
  } else if constexpr (std::same_as<T, std::string>) {
    if (!json.is_string()) return wrong("text");
    value = json.get<std::string>();
  } else if constexpr (std::integral<T>) {
    if (!json.is_number_integer()) return wrong("a whole number");
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>())
                                                : std::in_range<T>(json.get<int64_t>());
    if (!fits) return wrong("a whole number of this size");
    value = json.get<T>();
  } else if constexpr (std::floating_point<T>) {
    if (!json.is_number()) return wrong("a number");
    value = json.get<T>();
  } else if constexpr (internal::kIsOptional<T>) {
    return ReadFields(json, value.emplace(typename T::value_type{}));  // clang: not emplace()
  } else if constexpr (internal::kIsVector<T>) {
    if (!json.is_array()) return wrong("a list");
    value.clear();
    for (const Json& item : json) {
      if (Status read = ReadFields(item, value.emplace_back()); !read)
        return internal::AtPlace("[" + std::to_string(value.size() - 1) + "]", std::move(read).error(),
                                 false);
    }
  } else if constexpr (internal::kIsMap<T>) {
    if (!json.is_object()) return wrong("an object");
    value.clear();
    for (const auto& [name, item] : json.items()) {
      if (Status read = ReadFields(item, value[name]); !read)
        return internal::AtPlace(name, std::move(read).error());
    }
  } else {
    FieldReader reader(json);
    Describe(reader, value);
    return reader.status();
  }
  return {};
}

template <typename T>
Result<T> FieldsFromJson(const Json& json) {
  T value;
  if (Status read = ReadFields(json, value); !read) return std::unexpected(std::move(read).error());
  return value;
}

}  // namespace weir
