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
  Json* above = json.FindPath(path.substr(0, last));
  if (above == nullptr) throw JsonError("nothing is at " + std::string(path));
  const std::string key(path.substr(last + 1));
  return above->is_array() ? above->at(std::stoul(key)) : (*above)[key];
}

}  // namespace weir
