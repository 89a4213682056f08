// For tests that change one value deep inside a result.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace weir {

// The value at a path as "/levels/0/rate", whose last key is made where it is missing. Throws where the way
// there is.
inline Json& PlaceOf(Json& json, std::string_view path) {
  if (path.empty()) return json;
  const size_t last = path.rfind('/');
  Json& above = PlaceOf(json, path.substr(0, last));
  const std::string key(path.substr(last + 1));
  if (!above.is_array()) return above[key];
  const size_t index = std::stoul(key);
  if (index == above.size()) above.push_back(nullptr);
  return above.at(index);
}

}  // namespace weir
