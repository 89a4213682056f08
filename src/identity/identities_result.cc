#include "identity/identities_result.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/count.h"
#include "stats/quantile.h"

namespace weir::identity {
namespace {

using results::IdentitiesResult;

std::optional<IdentitiesResult::Share> ToResult(const std::optional<Share>& share) {
  if (!share) return std::nullopt;
  return IdentitiesResult::Share{.value = share->value, .low = share->low, .high = share->high};
}

std::string ShareText(const char* what, const std::optional<IdentitiesResult::Share>& share) {
  if (!share) return "";
  return fmt::format("  {:<20}{:.2f} % ({:.2f} to {:.2f})\n", what, 100 * share->value, 100 * share->low,
                     100 * share->high);
}

}  // namespace

IdentitiesResult::Index MakeResult(const IndexFacts& facts) {
  IdentitiesResult::Index index;
  index.dimension = facts.dimension;
  index.code_bits = facts.bits;
  index.model_hash = facts.model_hash;
  index.vectors = facts.rows;
  index.sealed_vectors = facts.sealed;
  index.sealed_files = facts.segments;
  if (facts.segments > 0) {
    index.lists = facts.lists;
    index.probes = facts.probes;
    index.candidates = facts.candidates;
  }
  index.memory_bytes = facts.resident_bytes;
  index.file_bytes = facts.file_bytes;
  index.torn_bytes = facts.torn_bytes;
  return index;
}

IdentitiesResult MakeResult(const Evaluation& evaluation, double threshold) {
  IdentitiesResult result;
  result.mates = evaluation.mates;
  result.strangers = evaluation.strangers;
  result.threshold = threshold;
  result.tpir = ToResult(evaluation.tpir);
  result.fpir = ToResult(evaluation.fpir);
  result.rank_one = ToResult(evaluation.rank_one);
  result.exact_rank_one = ToResult(evaluation.exact_rank_one);
  result.recall = ToResult(evaluation.recall);
  result.search_us = LatencyOf(evaluation.search_us);
  result.rows_scanned_per_query = evaluation.rows_scanned;
  result.rows_read_per_query = evaluation.rows_read;
  return result;
}

results::IdentitiesResult::Latency LatencyOf(std::vector<double> us) {
  results::IdentitiesResult::Latency latency;
  if (us.empty()) return latency;
  std::ranges::sort(us);
  const auto n = static_cast<int64_t>(us.size());
  const auto at = [&](double p) { return us[static_cast<size_t>(stats::NearestRank(p, n) - 1)]; };
  latency.p50 = at(0.5);
  if (stats::Supports(0.9, n)) latency.p90 = at(0.9);
  if (stats::Supports(0.99, n)) latency.p99 = at(0.99);
  latency.max = us.back();
  return latency;
}

std::string IndexText(const IdentitiesResult::Index& index) {
  std::string text =
      fmt::format("  vectors     {} of {} values, {} in {}\n", Count(static_cast<int64_t>(index.vectors)),
                  index.dimension, Count(static_cast<int64_t>(index.sealed_vectors)),
                  Count(static_cast<int64_t>(index.sealed_files), "sealed file"));
  if (index.lists && index.probes && index.candidates)
    text += fmt::format("  look-up     {} of {} probed, {} rows ranked again\n", *index.probes,
                        Count(static_cast<int64_t>(*index.lists), "list"), *index.candidates);
  text += fmt::format("  memory      {}; files {}\n", Size(static_cast<double>(index.memory_bytes)),
                      Size(static_cast<double>(index.file_bytes)));
  if (!index.model_hash.empty()) text += fmt::format("  model       {}\n", index.model_hash);
  return text;
}

std::string EvaluationText(const TextStyle& style, const IdentitiesResult& result) {
  const IdentitiesResult::Latency us = result.search_us.value_or(IdentitiesResult::Latency{});
  return fmt::format("{} least cosine {:.4f}\n", style.Bold("evaluation"), result.threshold.value_or(0)) +
         ShareText("identified (TPIR)", result.tpir) + ShareText("false alarms (FPIR)", result.fpir) +
         ShareText("first of all names", result.rank_one) +
         ShareText("  with every row", result.exact_rank_one) + ShareText("recall", result.recall) +
         fmt::format("  look-up             p50 {} us{}; {} rows scanned, {} read a query\n",
                     us.p50 ? Short(*us.p50) : "-", us.p99 ? fmt::format(", p99 {} us", Short(*us.p99)) : "",
                     Short(result.rows_scanned_per_query.value_or(0)),
                     Short(result.rows_read_per_query.value_or(0)));
}

}  // namespace weir::identity
