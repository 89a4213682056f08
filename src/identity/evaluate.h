// How well an index finds whom it should, and how often it raises a false alarm, at what latency.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "identity/index.h"
#include "identity/threshold.h"

namespace weir::identity {

struct EvaluationOptions {
  Index::SearchOptions search;
  size_t batch = 1;    // queries of one search
  bool exact = false;  // also compare with every row, for the recall
};

struct Evaluation {
  uint64_t mates = 0, strangers = 0;
  // The share of mates whose own name comes first, at or above the threshold (TPIR), and of strangers for
  // whom any name does (FPIR), as NIST FRVT 1:N has them.
  std::optional<Share> tpir, fpir;
  // Without the threshold: the share of mates whose own name comes first, here and in a comparison with every
  // row; and the share of the latter that the look-up finds as well.
  std::optional<Share> rank_one, exact_rank_one, recall;
  std::vector<double> search_us;           // of each search, of `batch` queries
  double rows_scanned = 0, rows_read = 0;  // a query, mean
};

// Searches for mates (vectors of enrolled names) and strangers. kCancelled after `stop`.
Result<Evaluation> Evaluate(const Index& index, std::span<const Enrolment> mates,
                            std::span<const Enrolment> strangers, const EvaluationOptions& options,
                            const Clock& clock, const std::stop_token& stop);

}  // namespace weir::identity
