// Classes to and from JSON by one list of their members.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_blocks.h"

namespace weir::predict {

// Writes or reads the members that `void Fields(Archive&)` of a class names. Members may be numbers,
// booleans, texts, enums (as numbers), classes with Fields, and pairs, lists, maps and optionals of them.
// After the first failure nothing more is read. Not thread-safe.
class Archive {
 public:
  enum class Mode { kRead, kWrite };
  // Borrows both.
  Archive(Json& json, Mode mode, Status& status) : json_(json), mode_(mode), status_(status) {}

  bool is_reading() const { return mode_ == Mode::kRead; }

  template <typename T>
  void operator()(const char* key, T& value) {
    if (Json* const json = Member(key)) Visit(*json, value);
  }
  // Numbers of which some may be NaN, which is written as null.
  template <typename T>
  void Sparse(const char* key, T& value) {
    may_be_unknown_ = true;
    (*this)(key, value);
    may_be_unknown_ = false;
  }
  // A long list of numbers, as base64 of their bytes.
  template <typename T>
  void Block(const char* key, std::vector<T>& numbers) {
    Json* const json = Member(key);
    if (json == nullptr) return;
    if (!is_reading()) {
      *json = EncodeBlock(numbers);
    } else if (auto read = DecodeBlock<T>(json->is_string() ? json->template get_ref<std::string&>() : "?")) {
      numbers = std::move(*read);
    } else {
      Corrupt(key, read.error().message);
    }
  }
  // Refuses what was read unless it is whole.
  void Require(bool is_whole, const char* what) {
    if (is_reading() && !is_whole) Corrupt(what, "not whole");
  }
  // Passes on what else may fail while reading.
  void Require(const Status& status) {
    if (status_ && !status) status_ = status;
  }

 private:
  template <typename T>
  void Visit(Json& json, T& value) {
    if constexpr (requires { value.Fields(*this); }) {
      if (!is_reading()) json = Json::object();
      Archive inner(json, mode_, status_);
      value.Fields(inner);
    } else if constexpr (std::is_enum_v<T>) {
      auto number = static_cast<int64_t>(value);
      Scalar(json, number);
      if (number < 0 || number > 100) return Corrupt("a choice", "out of range");
      value = static_cast<T>(number);
    } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      auto number = static_cast<int64_t>(value);
      Scalar(json, number);
      if (!std::in_range<T>(number)) return Corrupt("a number", "out of range");
      value = static_cast<T>(number);
    } else {
      Scalar(json, value);
    }
  }
  template <typename T>
  void Visit(Json& json, std::optional<T>& value) {
    if (is_reading()) {
      value.reset();
      if (!json.is_null()) Visit(json, value.emplace());
    } else if (value) {
      Visit(json, *value);
    }
  }
  template <typename T>
  void Visit(Json& json, std::vector<T>& list) {
    if (is_reading()) {
      list.clear();
      if (!json.is_array()) return Corrupt("a list", "missing");
      for (Json& item : json) {
        if (!status_) return;
        Visit(item, list.emplace_back());
      }
    } else {
      json = Json::array();
      for (T& item : list) Visit(json.emplace_back(), item);
    }
  }
  template <typename First, typename Second>
  void Visit(Json& json, std::pair<First, Second>& pair) {
    if (!is_reading()) json = {nullptr, nullptr};
    if (!json.is_array() || json.size() != 2) return Corrupt("a pair", "missing");
    Visit(json[0], pair.first);
    Visit(json[1], pair.second);
  }
  // An object; keys that are no texts make a list of pairs.
  template <typename Key, typename T>
  void Visit(Json& json, std::map<Key, T>& map) {
    std::vector<std::pair<Key, T>> items(map.begin(), map.end());
    if constexpr (!std::same_as<Key, std::string>) {
      Visit(json, items);
      if (is_reading()) map = {items.begin(), items.end()};
    } else if (is_reading()) {
      map.clear();
      if (!json.is_object()) return Corrupt("a map", "missing");
      for (auto& [key, value] : json.items()) {
        if (const auto name = UnescapeBytes(key); name && status_)
          Visit(value, map[*name]);
        else
          return Corrupt(key, "no name");
      }
    } else {
      json = Json::object();
      for (auto& [key, value] : items) Visit(json[EscapeBytes(key)], value);
    }
  }
  void Scalar(Json& json, double& value);
  void Scalar(Json& json, int64_t& value);
  void Scalar(Json& json, bool& value);
  void Scalar(Json& json, std::string& value);

  // Returns the member, or nullptr if it is missing or an earlier one was corrupt.
  Json* Member(const char* key);
  void Corrupt(const std::string& what, const std::string& why);

  Json& json_;
  const Mode mode_;
  Status& status_;
  bool may_be_unknown_ = false;
};

// Returns the members of `value` as JSON.
template <typename T>
Json ToJson(const T& value) {
  Json json = Json::object();
  Status status;
  Archive archive(json, Archive::Mode::kWrite, status);
  const_cast<T&>(value).Fields(archive);  // writing changes nothing
  return json;
}

// Reads a value. Returns kCorrupt, naming the first member that is missing or of another kind.
template <typename T>
Result<T> FromJson(Json json) {
  T value;
  Status status;
  Archive archive(json, Archive::Mode::kRead, status);
  value.Fields(archive);
  if (!status) return std::unexpected(status.error());
  return value;
}

}  // namespace weir::predict
