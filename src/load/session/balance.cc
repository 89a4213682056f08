#include "load/session/balance.h"

#include <algorithm>

namespace weir::load {

void AddCalls(const std::vector<infer::ServerCalls>& more, std::vector<infer::ServerCalls>& sum) {
  for (const infer::ServerCalls& calls : more) {
    const auto found = std::ranges::find(sum, calls.server, &infer::ServerCalls::server);
    if (found == sum.end()) {
      sum.push_back(calls);
    } else {
      found->answered += calls.answered;
      found->failed += calls.failed;
      found->moved += calls.moved;
    }
  }
}

std::vector<infer::ServerCalls> CallsSince(const std::vector<infer::ServerCalls>& before,
                                           std::vector<infer::ServerCalls> now) {
  for (infer::ServerCalls& calls : now) {
    const auto found = std::ranges::find(before, calls.server, &infer::ServerCalls::server);
    if (found == before.end()) continue;
    calls.answered -= std::min(calls.answered, found->answered);
    calls.failed -= std::min(calls.failed, found->failed);
    calls.moved -= std::min(calls.moved, found->moved);
  }
  return now;
}

}  // namespace weir::load
