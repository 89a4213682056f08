// One look-up: lists probed by their codes, the best rows read and ranked again by their int8 values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "identity/code.h"
#include "identity/fetch.h"
#include "identity/rows.h"
#include "identity/segment.h"
#include "identity/team.h"

namespace weir::identity {

// A query, rotated and of length 1.
struct SearchQuery {
  QuantisedVector quantised;
  QueryTables tables;
};
SearchQuery MakeQuery(QuantisedVector quantised, const CodeLayout& layout);

// A sealed file and how much of it a look-up regards.
struct SegmentUse {
  std::shared_ptr<const Segment> segment;
  size_t probes = 1;        // lists
  size_t candidates = 256;  // rows that are ranked again
  bool operator==(const SegmentUse&) const = default;
};

struct Match {
  std::string name;
  double score = 0;  // cosine, from the int8 rows
  bool operator==(const Match&) const = default;
};

// The work of a look-up.
struct SearchCost {
  uint64_t rows_scanned = 0, rows_read = 0;
};

// Returns the rows of the highest estimated score for each query, best first, at most the largest number of
// candidates of `uses`. Queries share the pass over a list.
std::vector<std::vector<Candidate>> FindCandidates(std::span<const SearchQuery> queries,
                                                   std::span<const SegmentUse> uses, Team& team,
                                                   SearchCost* cost = nullptr);

// The contents of an index at one moment.
struct Snapshot {
  std::vector<SegmentUse> segments;
  std::vector<TailPart> tail;
};

struct MatchOptions {
  size_t best = 5;                        // names a query
  double threshold = -1;                  // the least cosine of a match
  std::span<const std::string> excluded;  // for each query a name that is no match; empty: none
};
// Returns the best row of each of the best names, best first.
Result<std::vector<std::vector<Match>>> FindMatches(std::span<const SearchQuery> queries,
                                                    const Snapshot& snapshot, const MatchOptions& options,
                                                    Team& team, RowFetcher& fetcher,
                                                    SearchCost* cost = nullptr);

}  // namespace weir::identity
