// What a server's own clock says of the requests between two moments, a request on average.
#pragma once

#include <cstdint>
#include <optional>

#include "infer/endpoint.h"

namespace weir::cli {

struct ServerTimes {
  int64_t requests = 0;
  double rows_per_batch = 0;         // rows that were computed together; 0: the server does not count batches
  std::optional<double> receive_ms;  // from its first byte to its last, where that is part of request_ms
  double queue_ms = 0, compute_input_ms = 0, compute_infer_ms = 0, compute_output_ms = 0;
  double request_ms = 0;  // from its arrival to its answer

  // What the parts leave of it.
  double rest_ms() const {
    return request_ms - receive_ms.value_or(0) - queue_ms - compute_input_ms - compute_infer_ms -
           compute_output_ms;
  }
};

// Of what has come since some moment; nothing where no request has. Where parts overlap, the overlap counts
// once (load::CountOverlapOnce), so that the rest is not below 0.
std::optional<ServerTimes> ServerTimesOf(const infer::PhaseTotals& since);

}  // namespace weir::cli
