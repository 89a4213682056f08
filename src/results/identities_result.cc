#include "results/identities_result.h"

#include "base/fields.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, IdentitiesResult::Index>& index) {
  fields("dimension", index.dimension);
  fields("code_bits", index.code_bits);
  fields.Unless("model_hash", index.model_hash);
  fields("identities_vectors", index.vectors);
  fields("sealed_vectors", index.sealed_vectors);
  fields("sealed_files", index.sealed_files);
  fields("lists", index.lists);
  fields("probes", index.probes);
  fields("candidates", index.candidates);
  fields("memory_bytes", index.memory_bytes);
  fields("file_bytes", index.file_bytes);
  fields.Unless("torn_bytes", index.torn_bytes);
}

template <typename F>
void Describe(F& fields, Described<F, IdentitiesResult::Share>& share) {
  fields("value", share.value);
  fields("low", share.low);
  fields("high", share.high);
}

template <typename F>
void Describe(F& fields, Described<F, IdentitiesResult::Latency>& latency) {
  fields("p50", latency.p50);
  fields("p90", latency.p90);
  fields("p99", latency.p99);
  fields("max", latency.max);
}

template <typename F>
void Describe(F& fields, Described<F, IdentitiesResult::Match>& match) {
  fields("name", match.name);
  fields("score", match.score);
}

template <typename F>
void Describe(F& fields, Described<F, IdentitiesResult::Query>& query) {
  fields("query", query.number);
  fields.Unless("query_name", query.name);
  fields("names", query.matches);
}

template <typename F>
void Describe(F& fields, Described<F, IdentitiesResult>& result) {
  fields("added", result.added);
  fields("wall_s", result.wall_s);
  fields("enrolled", result.enrolled);
  fields("deleted", result.deleted);
  fields("names", result.names);
  fields("whole", result.whole);
  fields("exported", result.exported);
  fields("matches", result.matches);
  fields("queries", result.queries);
  fields("mates", result.mates);
  fields("strangers", result.strangers);
  fields("threshold", result.threshold);
  fields("tpir", result.tpir);
  fields("fpir", result.fpir);
  fields("rank_one", result.rank_one);
  fields("exact_rank_one", result.exact_rank_one);
  fields("recall", result.recall);
  fields("search_us", result.search_us);
  fields("rows_scanned_per_query", result.rows_scanned_per_query);
  fields("rows_read_per_query", result.rows_read_per_query);
  fields("index", result.index);
  fields("command", result.command);
}

Json IdentitiesResult::Latency::ToValue() const {
  Json json;
  FieldWriter writer(json);
  Describe(writer, *this);
  return json;
}

Result<IdentitiesResult::Latency> IdentitiesResult::Latency::FromValue(const Json& json) {
  Latency latency;
  if (json.is_null()) return latency;
  FieldReader reader(json);
  Describe(reader, latency);
  TRY_STATUS(reader.status());
  return latency;
}

Json IdentitiesResult::ToJson() const { return FieldsToJson(*this); }

Result<IdentitiesResult> IdentitiesResult::FromJson(const Json& json) {
  return FieldsFromJson<IdentitiesResult>(json);
}

}  // namespace weir::results
