#include "results/schema_version.h"

#include <fmt/format.h>

namespace weir::results {

Status CheckSchemaVersion(const Json& json, std::string_view what) {
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, fmt::format("not {}: not an object", what));
  if (!json.contains(kSchemaVersionKey))
    return Fail(ErrorCode::kUnsupported,
                fmt::format("not {}, or one of an older program: it has no \"{}\"; make it again", what,
                            kSchemaVersionKey));
  const int64_t version = TRY(GetInteger(json, kSchemaVersionKey));
  if (version == kSchemaVersion) return {};
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format(
          "{} of schema version {}, and this program reads version {}: {}", what, version, kSchemaVersion,
          version > kSchemaVersion ? "use the program that made it, or a newer one" : "make it again"));
}

}  // namespace weir::results
