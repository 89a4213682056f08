// The version of the JSON that the program writes and reads back: results and journals. It rises when a key
// changes its meaning or goes away. docs/reference/schema has the schemas of this version.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

inline constexpr int64_t kSchemaVersion = 1;
inline constexpr const char* kSchemaVersionKey = "schema_version";

// Checks that `json` was written by a program of this version. `what` names it: "a load result". kCorrupt for
// a value that is no version; kUnsupported, with the remedy, for another version or none.
Status CheckSchemaVersion(const Json& json, std::string_view what);

}  // namespace weir::results
