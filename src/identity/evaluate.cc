#include "identity/evaluate.h"

#include <algorithm>

namespace weir::identity {
namespace {

// Returns the name of the row of the highest cosine for each query, compared with every row.
Result<std::vector<std::string>> ExactBest(const Index& index, std::span<const Enrolment> queries,
                                           const std::stop_token& stop) {
  const Rotation rotation(index.dimension());
  std::vector<QuantisedVector> wanted;
  for (const Enrolment& query : queries) wanted.push_back(TRY(Quantise(query.vector, rotation)));
  std::vector<std::string> names(queries.size());
  std::vector<float> best(queries.size(), -2);
  uint64_t seen = 0;
  TRY_STATUS(index.ForEach([&](const RowView& row) -> Status {
    if (++seen % 1024 == 0 && stop.stop_requested()) return Fail(ErrorCode::kCancelled, "interrupted");
    for (size_t q = 0; q < wanted.size(); ++q) {
      const float score =
          static_cast<float>(Product(wanted[q].values.data(), row.values, index.dimension())) * row.scale;
      if (score * wanted[q].scale > best[q]) {
        best[q] = score * wanted[q].scale;
        names[q] = row.name;
      }
    }
    return {};
  }));
  return names;
}

}  // namespace

Result<Evaluation> Evaluate(const Index& index, std::span<const Enrolment> mates,
                            std::span<const Enrolment> strangers, const EvaluationOptions& options,
                            const Clock& clock, const std::stop_token& stop) {
  Evaluation evaluation;
  evaluation.mates = mates.size();
  evaluation.strangers = strangers.size();
  SearchCost cost;
  Index::SearchOptions search = options.search;
  search.threshold = -1;
  // The best match of each query.
  const auto run = [&](std::span<const Enrolment> queries) -> Result<std::vector<Match>> {
    std::vector<Match> first;
    const size_t batch = std::max<size_t>(options.batch, 1);
    for (size_t at = 0; at < queries.size(); at += batch) {
      if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "interrupted");
      std::vector<std::vector<float>> vectors;
      for (size_t i = at; i < std::min(at + batch, queries.size()); ++i) vectors.push_back(queries[i].vector);
      const Instant begin = clock.Now();
      auto found = TRY(index.Search(vectors, search, &cost));
      evaluation.search_us.push_back(Microseconds(clock.Now() - begin));
      for (auto& matches : found)
        first.push_back(matches.empty() ? Match{"", -2} : std::move(matches.front()));
    }
    return first;
  };
  const std::vector<Match> of_mates = TRY(run(mates)), of_strangers = TRY(run(strangers));
  const double threshold = options.search.threshold;
  uint64_t identified = 0, first = 0, alarms = 0;
  for (size_t i = 0; i < mates.size(); ++i) {
    const bool own = of_mates[i].name == mates[i].name;
    first += own ? 1 : 0;
    identified += own && of_mates[i].score >= threshold ? 1 : 0;
  }
  for (const Match& match : of_strangers) alarms += match.score >= threshold ? 1 : 0;
  if (!mates.empty()) {
    evaluation.tpir = ShareOf(identified, mates.size());
    evaluation.rank_one = ShareOf(first, mates.size());
  }
  if (!strangers.empty()) evaluation.fpir = ShareOf(alarms, strangers.size());
  const auto queries = static_cast<double>(std::max<size_t>(mates.size() + strangers.size(), 1));
  evaluation.rows_scanned = static_cast<double>(cost.rows_scanned) / queries;
  evaluation.rows_read = static_cast<double>(cost.rows_read) / queries;
  if (!options.exact || mates.empty()) return evaluation;
  const std::vector<std::string> exact = TRY(ExactBest(index, mates, stop));
  uint64_t exact_first = 0, both = 0;
  for (size_t i = 0; i < mates.size(); ++i) {
    const bool own = exact[i] == mates[i].name;
    exact_first += own ? 1 : 0;
    both += own && of_mates[i].name == mates[i].name ? 1 : 0;
  }
  evaluation.exact_rank_one = ShareOf(exact_first, mates.size());
  if (exact_first > 0) evaluation.recall = ShareOf(both, exact_first);
  return evaluation;
}

}  // namespace weir::identity
