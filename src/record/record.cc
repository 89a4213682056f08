#include "record/record.h"

#include <fmt/format.h>

namespace weir::record {
namespace {

Result<Json> GetObject(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (!json.is_object() || found == json.end() || !found->is_object()) {
    return Fail(ErrorCode::kCorrupt, fmt::format("key \"{}\" is missing or is not an object", key));
  }
  return *found;
}

}  // namespace

Json Record::ToJson() const {
  return {{"factors", factors},
          {"metrics", metrics},
          {"verdict", verdict.ToJson()},
          {"provenance", provenance},
          {"command", command}};
}

Result<Record> Record::FromJson(const Json& json) {
  Record record;
  record.factors = TRY(GetObject(json, "factors"));
  record.metrics = TRY(GetObject(json, "metrics"));
  record.verdict = TRY_CONTEXT(Verdict::FromJson(TRY(GetObject(json, "verdict"))), "verdict");
  record.provenance = TRY(GetString(json, "provenance"));
  record.command = TRY(GetString(json, "command"));
  return record;
}

}  // namespace weir::record
