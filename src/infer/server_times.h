// A server's own account of the requests between two looks at its statistics, averaged over the requests.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "infer/endpoint.h"

namespace weir::infer {

struct MeanServerTimes {
  int64_t requests = 0;
  double rows_per_batch = 0;         // rows computed together; 0: the server does not count batches
  std::optional<double> receive_ms;  // from the first byte to the last, where that is part of request_ms
  double queue_ms = 0, compute_input_ms = 0, compute_infer_ms = 0, compute_output_ms = 0;
  double request_ms = 0;  // from the request's arrival to its response

  // Returns the time that no part accounts for.
  double rest_ms() const {
    return request_ms - receive_ms.value_or(0) - queue_ms - compute_input_ms - compute_infer_ms -
           compute_output_ms;
  }
};

// Averages the counts since some moment. Returns nullopt if no request succeeded since. Where parts overlap,
// the overlap counts once (CountOverlapOnce), so that the rest is not below 0.
std::optional<MeanServerTimes> MeanTimesOf(const PhaseTotals& since);

// Raises `rest` to 0 where it is below, and takes as much from `overlapping`, one after the other, none of
// which goes below 0. `rest` is the time that the parts leave over. A negative rest tells by how much the
// parts overlap, and the overlap then counts once. The sum of all stays the same. Where the parts are too
// short for that, `rest` stays below 0: the times are not of the same requests.
void CountOverlapOnce(double& rest, std::initializer_list<double*> overlapping);

}  // namespace weir::infer
