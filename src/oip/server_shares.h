// The shares of several servers in the calls of a client.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "infer/choices.h"
#include "infer/endpoint.h"
#include "results/server_shares.h"

namespace weir::oip {

// Returns the shares under the policy `balance`; nullopt without calls by server.
std::optional<results::ServerShares> SharesOf(infer::Balance balance,
                                              const std::vector<infer::ServerCalls>& calls);

}  // namespace weir::oip
