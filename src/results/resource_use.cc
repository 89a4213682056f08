#include "results/resource_use.h"

#include "base/fields.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, ResourceUse::Range>& range) {
  fields.FromZero("mean", range.mean);
  fields.FromZero("max", range.max);
  fields.FromZero("min", range.min);
}

template <typename F>
void Describe(F& fields, Described<F, ResourceUse>& use) {
  fields.FromZero("steal_percent", use.steal_percent);
  fields.FromZero("throttled_s", use.throttled_s);
  fields.FromZero("wall_s", use.wall_s);
  fields.FromZero("period_ms", use.period_ms);
  fields.FromZero("samples", use.samples);
}

namespace {

// Reads every {mean, max, min} that stands directly in `json`, under a name that begins with `before`.
Status ReadRanges(const Json& json, const std::string& before, std::vector<ResourceUse::Range>& ranges) {
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object() || !value.contains("mean")) continue;
    ResourceUse::Range range;
    range.name = before + key;
    if (Status read = ReadFields(value, range); !read) return Context(range.name, std::move(read).error());
    ranges.push_back(std::move(range));
  }
  return {};
}

}  // namespace

Result<ResourceUse> ResourceUse::FromValue(const Json& json) {
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, "is not an object");
  ResourceUse use;
  FieldReader reader(json);
  Describe(reader, use);
  TRY_STATUS(reader.status());
  use.json = json;
  TRY_STATUS(ReadRanges(json, "", use.ranges));
  if (const auto metrics = json.find("server_metrics"); metrics != json.end()) {
    if (!metrics->is_object()) return Fail(ErrorCode::kCorrupt, "key \"server_metrics\" is not an object");
    TRY_STATUS(ReadRanges(*metrics, "server_metrics.", use.ranges));
  }
  if (const auto gpus = json.find("gpus"); gpus != json.end()) {
    if (!gpus->is_array()) return Fail(ErrorCode::kCorrupt, "key \"gpus\" is not a list");
    for (size_t i = 0; i < gpus->size(); ++i) {
      if (!(*gpus)[i].is_object()) return Fail(ErrorCode::kCorrupt, "key \"gpus\" is not a list of objects");
      TRY_STATUS(ReadRanges((*gpus)[i], "gpus[" + std::to_string(i) + "].", use.ranges));
    }
  }
  return use;
}

}  // namespace weir::results
