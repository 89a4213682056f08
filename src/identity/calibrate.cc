#include "identity/calibrate.h"

#include <algorithm>
#include <cmath>

#include "base/seed.h"
#include "identity/made.h"

namespace weir::identity {
namespace {

constexpr size_t kMostCandidates = 4096, kLeastCandidates = 64, kBatch = 64;

std::vector<float> ValuesOf(const RowView& row, size_t dimension) {
  std::vector<float> values(dimension);
  for (size_t i = 0; i < dimension; ++i) values[i] = static_cast<float>(row.values[i]) * row.scale;
  return values;
}

// Returns the least number that at least `share` of `ranks` (from 0) lie below.
size_t Covering(std::vector<size_t> ranks, double share) {
  std::ranges::sort(ranks);
  const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(ranks.size())));
  return ranks[std::clamp<size_t>(at, 1, ranks.size()) - 1] + 1;
}

// Returns the place of a list among all, by the score of its centre.
size_t RankOfList(const SearchQuery& query, const Lists& lists, size_t list) {
  std::vector<int32_t> products(lists.size());
  Products(query.quantised.values.data(), lists.centres.data(), lists.dimension, lists.size(),
           products.data());
  const auto score = [&](size_t i) { return static_cast<float>(products[i]) * lists.scales[i]; };
  size_t rank = 0;
  for (size_t i = 0; i < lists.size(); ++i) rank += score(i) > score(list) ? 1 : 0;
  return rank;
}

}  // namespace

Result<SegmentUse> CalibrateSegment(std::shared_ptr<const Segment> segment, const CalibrationOptions& options,
                                    Team& team, const std::stop_token& stop) {
  const uint64_t rows = segment->rows();
  SegmentUse use{segment, 1, std::min<uint64_t>(rows, 256)};
  if (rows < 1024 || options.mates == 0) {
    use.probes = segment->layout().lists;
    use.candidates = rows;
    return use;
  }
  const SegmentLayout& layout = segment->layout();
  Random random(options.seed);
  std::vector<uint64_t> planted;
  std::vector<SearchQuery> queries;
  for (size_t i = 0; i < options.mates; ++i) {
    const auto row = static_cast<uint64_t>(random.Integer(0, static_cast<int64_t>(rows) - 1));
    const RowView view = TRY(segment->Row(row));
    const auto mate = PlantMate(ValuesOf(view, layout.dimension), options.mate_cosine, random.Next());
    queries.push_back(MakeQuery(QuantiseRotated(mate), layout.code()));
    planted.push_back(row);
  }
  std::vector<size_t> ranks(queries.size());
  team.ForEachPart(queries.size(), 8, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      ranks[i] =
          RankOfList(queries[i], *segment->lists(), *segment->ListOf(planted[i], segment->lists().get()));
  });
  use.probes = Covering(ranks, options.share);
  if (use.probes * 2 > layout.lists) use.probes = layout.lists;
  use.candidates = std::min<uint64_t>(rows, kMostCandidates);
  for (size_t first = 0; first < queries.size(); first += kBatch) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "interrupted");
    const auto batch = std::span(queries).subspan(first, std::min(kBatch, queries.size() - first));
    const auto found = FindCandidates(batch, std::span(&use, 1), team);
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto at = std::ranges::find(found[i], planted[first + i], &Candidate::row);
      ranks[first + i] = static_cast<size_t>(at - found[i].begin());
    }
  }
  use.candidates = std::min<uint64_t>(
      rows, std::clamp(2 * Covering(ranks, options.share), kLeastCandidates, kMostCandidates));
  return use;
}

Result<std::optional<StrangerScores>> MeasureStrangers(const Snapshot& snapshot, const CodeLayout& layout,
                                                       size_t searches, uint64_t seed, Team& team,
                                                       RowFetcher& fetcher, const std::stop_token& stop) {
  uint64_t rows = 0;
  for (const SegmentUse& use : snapshot.segments) rows += use.segment->rows();
  for (const TailPart& part : snapshot.tail) rows += part.rows;
  if (rows < 100) return std::nullopt;
  Random random(seed);
  const auto draw = [&]() -> Result<RowView> {
    auto at = static_cast<uint64_t>(random.Integer(0, static_cast<int64_t>(rows) - 1));
    for (const SegmentUse& use : snapshot.segments) {
      if (at < use.segment->rows()) return use.segment->Row(at);
      at -= use.segment->rows();
    }
    for (const TailPart& part : snapshot.tail) {
      if (at < part.rows) return part.block->Row(at);
      at -= part.rows;
    }
    return Fail(ErrorCode::kInternal, "no such row");
  };
  std::vector<double> best;
  const size_t count = std::max<uint64_t>(100, std::min<uint64_t>(searches, rows));
  while (best.size() < count) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "interrupted");
    std::vector<SearchQuery> queries;
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(kBatch, count - best.size()); ++i) {
      const RowView row = TRY(draw());
      names.emplace_back(row.name);
      queries.push_back(MakeQuery(QuantiseRotated(ValuesOf(row, layout.dimension)), layout));
    }
    const auto found = TRY(FindMatches(queries, snapshot, {.best = 1, .excluded = names}, team, fetcher));
    for (const auto& of_query : found) best.push_back(of_query.empty() ? -1 : of_query.front().score);
  }
  return SummariseStrangers(std::move(best), rows);
}

}  // namespace weir::identity
