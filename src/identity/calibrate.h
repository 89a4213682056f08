// Measures on an index's own rows how much of it a look-up must regard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

#include "base/error.h"
#include "identity/search.h"
#include "identity/threshold.h"

namespace weir::identity {

struct CalibrationOptions {
  double mate_cosine = 0.4;  // of the hardest mate that shall be found
  double share = 0.996;      // of such mates whose list, and whose row, are regarded
  size_t mates = 1000;       // planted to measure it
  uint64_t seed = 1;
};

// Plants mates of rows of `segment` and returns how many lists and candidates hold that share of them.
// Vectors without structure need all lists: the look-up is then a scan of all codes. Deterministic for a
// seed.
Result<SegmentUse> CalibrateSegment(std::shared_ptr<const Segment> segment, const CalibrationOptions& options,
                                    Team& team, const std::stop_token& stop = {});

inline constexpr size_t kStrangerSearches = 10'000;  // that measure the scores of strangers well

// Searches with up to `searches` rows of the snapshot and returns how high the best row of another name
// scores. Returns nullopt below 100 rows.
Result<std::optional<StrangerScores>> MeasureStrangers(const Snapshot& snapshot, const CodeLayout& layout,
                                                       size_t searches, uint64_t seed, Team& team,
                                                       RowFetcher& fetcher, const std::stop_token& stop = {});

}  // namespace weir::identity
