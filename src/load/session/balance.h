// The accounts of a load over several servers. Pure.
#pragma once

#include <vector>

#include "infer/endpoint.h"

namespace weir::load {

// Adds the counts of `more` to those of the same servers; new ones join.
void AddCalls(const std::vector<infer::ServerCalls>& more, std::vector<infer::ServerCalls>& sum);
// Returns what has come since `before`.
std::vector<infer::ServerCalls> CallsSince(const std::vector<infer::ServerCalls>& before,
                                           std::vector<infer::ServerCalls> now);

}  // namespace weir::load
