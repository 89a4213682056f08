// Which combinations of levels mean something. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir::study {

// What is left of a combination once its factors without meaning are gone: two that come to the same are one
// configuration.
struct Sense {
  Json factors = Json::object();       // by name, in the order of Factors()
  std::vector<std::string> changes;    // "protocol has no meaning: there is no server in one process"
  std::optional<std::string> dropped;  // why there is no such thing; the rest is then of no use
};

// `combination` maps factors to levels that CheckLevel has passed. A rule that asks for a factor the
// combination does not have takes Factor::otherwise.
Sense MakeSense(const Json& combination);

}  // namespace weir::study
