// Which combinations of levels mean something. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir::study {

// A combination without the factors that are not applicable to it: two that come to the same are one
// configuration.
struct Sense {
  Json factors = Json::object();       // by name, in the order of Factors()
  std::vector<std::string> changes;    // "protocol is not applicable: there is no server in one process"
  std::optional<std::string> dropped;  // why there is no such thing; the rest is then of no use
};

// `combination` maps factors to levels that CheckLevel has passed. A rule that asks for a factor the
// combination does not have takes Factor::otherwise.
Sense MakeSense(const Json& combination);

}  // namespace weir::study
