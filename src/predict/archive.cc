#include "predict/archive.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace weir::predict {

Json* Archive::Member(const char* key) {
  if (!is_reading()) return &json_[key];
  if (!status_) return nullptr;
  const auto found = json_.is_object() ? json_.find(key) : json_.end();
  if (!json_.is_object() || found == json_.end()) {
    Corrupt(key, "missing");
    return nullptr;
  }
  return &*found;
}

void Archive::Corrupt(const std::string& what, const std::string& why) {
  if (status_) status_ = Fail(ErrorCode::kCorrupt, fmt::format("{}: {}", what, why));
}

void Archive::Scalar(Json& json, double& value) {
  if (!is_reading()) {
    json = value;
  } else if (json.is_number()) {
    value = json.get<double>();
  } else if (json.is_null() && may_be_unknown_) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    Corrupt("a number", "missing");
  }
}

void Archive::Scalar(Json& json, int64_t& value) {
  if (!is_reading())
    json = value;
  else if (json.is_number_integer())
    value = json.get<int64_t>();
  else
    Corrupt("a whole number", "missing");
}

void Archive::Scalar(Json& json, bool& value) {
  if (!is_reading())
    json = value;
  else if (json.is_boolean())
    value = json.get<bool>();
  else
    Corrupt("true or false", "missing");
}

void Archive::Scalar(Json& json, std::string& value) {
  if (!is_reading()) {
    json = EscapeBytes(value);
  } else if (auto text = json.is_string() ? UnescapeBytes(json.get_ref<std::string&>())
                                          : Result<std::string>(Fail(ErrorCode::kCorrupt, ""))) {
    value = std::move(*text);
  } else {
    Corrupt("a text", "missing");
  }
}

}  // namespace weir::predict
