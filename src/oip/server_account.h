// Tells what a server's statistics and its configuration say of its part in a run. Pure.
#pragma once

#include "infer/endpoint.h"
#include "infer/server_times.h"
#include "results/bounds.h"

namespace weir::oip {

// Sums the mean times over `requests` of `rows` each.
results::ServerAccount AccountOf(const infer::MeanServerTimes& times, double requests, double rows);

// Adds what the configuration of `servers` alike tells. `rows_in_flight`: rows on their way at once, at most.
void AddConfigured(const infer::ModelInfo& info, int servers, double rows_in_flight,
                   results::ServerAccount& account);

}  // namespace weir::oip
