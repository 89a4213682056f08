#include "identity/search.h"

#include <algorithm>
#include <atomic>

namespace weir::identity {
namespace {

struct ListJob {
  uint32_t segment, list, query;
  float base;
};

// The lists of one segment that a query probes, nearest first.
void AddJobs(const SearchQuery& query, uint32_t number, const SegmentUse& use, uint32_t segment,
             std::vector<ListJob>& jobs) {
  const Lists& lists = *use.segment->lists();
  std::vector<int32_t> products(lists.size());
  Products(query.quantised.values.data(), lists.centres.data(), lists.dimension, lists.size(),
           products.data());
  std::vector<ListJob> all;
  all.reserve(lists.size());
  for (size_t list = 0; list < lists.size(); ++list) {
    all.push_back({segment, static_cast<uint32_t>(list), number,
                   static_cast<float>(products[list]) * query.quantised.scale * lists.scales[list]});
  }
  const auto nearer = [](const ListJob& a, const ListJob& b) {
    return a.base != b.base ? a.base > b.base : a.list < b.list;
  };
  const size_t probes = std::min(std::max<size_t>(use.probes, 1), all.size());
  std::ranges::partial_sort(all, all.begin() + static_cast<ptrdiff_t>(probes), nearer);
  jobs.insert(jobs.end(), all.begin(), all.begin() + static_cast<ptrdiff_t>(probes));
}

// The matches of one query so far, best first.
class Matches {
 public:
  explicit Matches(const MatchOptions& options) : options_(&options) {}
  bool Wants(double score) const {
    return score >= options_->threshold &&
           (kept_.size() < options_->best || (options_->best > 0 && score > kept_.back().score));
  }
  void Add(std::string_view name, double score) {
    if (!Wants(score)) return;
    const auto same = std::ranges::find(kept_, name, &Match::name);
    if (same != kept_.end()) {
      if (score <= same->score) return;
      kept_.erase(same);
    }
    const auto behind = std::ranges::find_if(
        kept_, [&](const Match& m) { return score != m.score ? score > m.score : name < m.name; });
    kept_.insert(behind, {std::string(name), score});
    if (kept_.size() > options_->best) kept_.pop_back();
  }
  std::vector<Match> Take() { return std::move(kept_); }

 private:
  const MatchOptions* options_;
  std::vector<Match> kept_;
};

}  // namespace

SearchQuery MakeQuery(QuantisedVector quantised, const CodeLayout& layout) {
  std::vector<float> values;
  values.reserve(quantised.values.size());
  for (const int8_t value : quantised.values) values.push_back(static_cast<float>(value) * quantised.scale);
  return {std::move(quantised), MakeTables(values, layout)};
}

std::vector<std::vector<Candidate>> FindCandidates(std::span<const SearchQuery> queries,
                                                   std::span<const SegmentUse> uses, Team& team,
                                                   SearchCost* cost) {
  size_t wanted = 0;
  for (const SegmentUse& use : uses) wanted = std::max(wanted, use.candidates);
  std::vector<std::vector<Candidate>> found(queries.size());
  if (wanted == 0) return found;
  std::vector<ListJob> jobs;
  for (uint32_t segment = 0; segment < uses.size(); ++segment) {
    if (uses[segment].segment->rows() == 0) continue;
    for (uint32_t q = 0; q < queries.size(); ++q) AddJobs(queries[q], q, uses[segment], segment, jobs);
  }
  if (queries.size() > 1) {
    std::ranges::sort(jobs, [](const ListJob& a, const ListJob& b) {
      return a.segment != b.segment ? a.segment < b.segment
             : a.list != b.list     ? a.list < b.list
                                    : a.query < b.query;
    });
  }
  // A worker takes all queries of a list together, so that the list is read from memory once.
  std::vector<size_t> firsts;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i == 0 || jobs[i].segment != jobs[i - 1].segment || jobs[i].list != jobs[i - 1].list)
      firsts.push_back(i);
  }
  firsts.push_back(jobs.size());
  const auto workers = static_cast<size_t>(team.workers());
  std::vector<std::vector<Highest>> highest(workers);
  std::vector<uint64_t> scanned(workers);
  std::atomic<size_t> next{0};
  team.Run([&](size_t worker) {
    highest[worker].assign(queries.size(), Highest(wanted));
    for (size_t at = next.fetch_add(1); at + 1 < firsts.size(); at = next.fetch_add(1)) {
      const ListJob& first = jobs[firsts[at]];
      const ScanJob scan = uses[first.segment].segment->Job(first.list, first.segment);
      for (size_t i = firsts[at]; i < firsts[at + 1]; ++i)
        ScanList(scan, queries[jobs[i].query].tables, jobs[i].base, highest[worker][jobs[i].query]);
      scanned[worker] += scan.rows;
    }
  });
  for (size_t q = 0; q < queries.size(); ++q) {
    Highest all(wanted);
    for (auto& of_worker : highest) {
      if (of_worker.empty()) continue;
      for (const Candidate& candidate : of_worker[q].Take()) all.Add(candidate);
    }
    found[q] = all.Take();
  }
  if (cost != nullptr) {
    for (const uint64_t rows : scanned) cost->rows_scanned += rows;
  }
  return found;
}

Result<std::vector<std::vector<Match>>> FindMatches(std::span<const SearchQuery> queries,
                                                    const Snapshot& snapshot, const MatchOptions& options,
                                                    Team& team, RowFetcher& fetcher, SearchCost* cost) {
  std::vector<Matches> matches(queries.size(), Matches(options));
  const auto excluded = [&](size_t q, std::string_view name) {
    return !options.excluded.empty() && options.excluded[q] == name;
  };
  // Each row is read once for all queries that want it.
  struct Wanted {
    RowRequest row;
    uint32_t query;
  };
  std::vector<Wanted> wanted;
  const auto found = FindCandidates(queries, snapshot.segments, team, cost);
  for (uint32_t q = 0; q < queries.size(); ++q) {
    for (const Candidate& candidate : found[q]) wanted.push_back({{candidate.segment, candidate.row}, q});
  }
  std::ranges::sort(wanted, [](const Wanted& a, const Wanted& b) {
    return a.row.segment != b.row.segment ? a.row.segment < b.row.segment
           : a.row.row != b.row.row       ? a.row.row < b.row.row
                                          : a.query < b.query;
  });
  std::vector<RowRequest> requests;
  std::vector<size_t> firsts;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i > 0 && wanted[i].row.segment == wanted[i - 1].row.segment &&
        wanted[i].row.row == wanted[i - 1].row.row)
      continue;
    requests.push_back(wanted[i].row);
    firsts.push_back(i);
  }
  firsts.push_back(wanted.size());
  std::vector<const Segment*> segments;
  for (const SegmentUse& use : snapshot.segments) segments.push_back(use.segment.get());
  TRY_STATUS(fetcher.Fetch(segments, requests, [&](size_t request, const RowView& row) {
    for (size_t i = firsts[request]; i < firsts[request + 1]; ++i) {
      const uint32_t q = wanted[i].query;
      const QuantisedVector& query = queries[q].quantised;
      const double score =
          Cosine(query.values.data(), query.scale, row.values, row.scale, query.values.size());
      if (matches[q].Wants(score) && !excluded(q, row.name)) matches[q].Add(row.name, score);
    }
  }));
  if (cost != nullptr) cost->rows_read += requests.size();
  std::vector<int32_t> products(TailBlock::kRows);
  for (const TailPart& part : snapshot.tail) {
    for (size_t q = 0; q < queries.size(); ++q) {
      const QuantisedVector& query = queries[q].quantised;
      Products(query.values.data(), part.block->values(), query.values.size(), part.rows, products.data());
      for (size_t row = 0; row < part.rows; ++row) {
        const double score =
            products[row] * static_cast<double>(query.scale) * static_cast<double>(part.block->scale(row));
        if (matches[q].Wants(score) && !excluded(q, part.block->name(row)))
          matches[q].Add(part.block->name(row), score);
      }
    }
    if (cost != nullptr) cost->rows_scanned += part.rows;
  }
  std::vector<std::vector<Match>> answers;
  for (Matches& of_query : matches) answers.push_back(of_query.Take());
  return answers;
}

}  // namespace weir::identity
